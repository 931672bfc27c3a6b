//! Places for the names of points, so that no name is on another name or on a point.

/// An upright rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    /// The left end.
    pub left: f64,
    /// The right end.
    pub right: f64,
    /// The top, which is less than the bottom.
    pub top: f64,
    /// The bottom.
    pub bottom: f64,
}

impl Area {
    /// A square around a point.
    pub(super) fn around((x, y): (f64, f64), reach: f64) -> Area {
        Area { left: x - reach, right: x + reach, top: y - reach, bottom: y + reach }
    }

    /// Whether the two have a part in common.
    pub(super) fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn is_inside(&self, other: &Area) -> bool {
        self.left >= other.left
            && self.right <= other.right
            && self.top >= other.top
            && self.bottom <= other.bottom
    }
}

/// The side of a text that is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The text begins there.
    Start,
    /// The text has its middle there.
    Middle,
    /// The text ends there.
    End,
}

/// A name's place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Label {
    /// The x of its anchor.
    pub x: f64,
    /// The y of its base line.
    pub y: f64,
    /// Its side at that place.
    pub anchor: Anchor,
    /// Whether it is so far from its point that a line must join them.
    pub is_far: bool,
}

/// A point and the width of its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    /// The point.
    pub at: (f64, f64),
    /// The width of its name.
    pub width: f64,
}

/// The height of a name above its base line, and below it.
const ABOVE: f64 = 8.5;
const BELOW: f64 = 2.5;
/// The distance of a name from the middle of its point.
const NEAR: f64 = 7.0;
/// Half the width of a point.
const POINT: f64 = 4.5;
/// Larger distances, with a line from the point to the name.
const FAR: [f64; 4] = [15.0, 24.0, 36.0, 50.0];
/// The directions, the preferred ones first.
const DIRECTIONS: [(f64, f64); 8] =
    [(1.0, 0.0), (-1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (0.7, -0.7), (0.7, 0.7), (-0.7, -0.7), (-0.7, 0.7)];

/// A place for each name within `room`, in the given order; `None` if there is no free one. Of the free places of a name the
/// nearest is taken that is on the fewest of `lines`.
pub(super) fn place(names: &[Named], lines: &[Area], room: &Area) -> Vec<Option<Label>> {
    let mut taken: Vec<Area> = names.iter().map(|name| Area::around(name.at, POINT)).collect();
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        let distances = [NEAR].into_iter().chain(FAR);
        let candidates =
            distances.flat_map(|far| DIRECTIONS.map(|direction| candidate(name, direction, far)));
        let free = candidates
            .enumerate()
            .filter(|(_, (_, area))| area.is_inside(room) && !taken.iter().any(|other| area.overlaps(other)));
        let cost = |(order, (_, area)): &(usize, (Label, Area))| {
            order + 6 * lines.iter().filter(|line| area.overlaps(line)).count()
        };
        let best = free.min_by_key(cost).map(|(_, found)| found);
        taken.extend(best.map(|(_, area)| area));
        places.push(best.map(|(label, _)| label));
    }
    places
}

fn candidate(name: &Named, (right, down): (f64, f64), far: f64) -> (Label, Area) {
    let (x, middle) = (name.at.0 + right * far, name.at.1 + down * far);
    let (anchor, left) = match right {
        right if right > 0.0 => (Anchor::Start, x),
        right if right < 0.0 => (Anchor::End, x - name.width),
        _ => (Anchor::Middle, x - name.width / 2.0),
    };
    // A name above or below its point must not begin at its middle.
    let y = middle + (ABOVE - BELOW) / 2.0 + down * (ABOVE + BELOW) / 4.0;
    let area = Area { left, right: left + name.width, top: y - ABOVE, bottom: y + BELOW };
    (Label { x, y, anchor, is_far: far > NEAR }, area)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn area(name: &Named, label: &Label) -> Area {
        let left = match label.anchor {
            Anchor::Start => label.x,
            Anchor::Middle => label.x - name.width / 2.0,
            Anchor::End => label.x - name.width,
        };
        Area { left, right: left + name.width, top: label.y - ABOVE, bottom: label.y + BELOW }
    }

    proptest! {
        #[test]
        fn no_name_is_on_another_or_on_a_point_or_outside(
            points in proptest::collection::vec((0.0..300.0_f64, 0.0..200.0_f64, 5.0..150.0_f64), 0..40),
        ) {
            let names: Vec<Named> = points.iter().map(|(x, y, width)| Named { at: (*x, *y), width: *width }).collect();
            let room = Area { left: -5.0, right: 305.0, top: -5.0, bottom: 205.0 };
            let labels = place(&names, &[], &room);
            prop_assert_eq!(labels.len(), names.len());
            let areas: Vec<Area> =
                names.iter().zip(&labels).filter_map(|(name, label)| Some(area(name, label.as_ref()?))).collect();
            for (number, area) in areas.iter().enumerate() {
                prop_assert!(area.left >= room.left && area.right <= room.right, "{area:?}");
                prop_assert!(area.top >= room.top && area.bottom <= room.bottom, "{area:?}");
                prop_assert!(!areas[..number].iter().any(|other| area.overlaps(other)), "{areas:?}");
                prop_assert!(!names.iter().any(|name| area.overlaps(&Area::around(name.at, POINT))), "{areas:?}");
            }
        }
    }

    #[test]
    fn a_lonely_point_has_its_name_to_its_right_and_off_a_line() {
        let name = Named { at: (100.0, 100.0), width: 30.0 };
        let room = Area { left: 0.0, right: 300.0, top: 0.0, bottom: 200.0 };
        let free = place(&[name], &[], &room)[0].unwrap();
        assert_eq!((free.anchor, free.is_far), (Anchor::Start, false));
        let line = Area { left: 100.0, right: 300.0, top: 99.5, bottom: 100.5 };
        let beside = place(&[name], &[line], &room)[0].unwrap();
        assert_eq!((beside.anchor, beside.is_far), (Anchor::End, false));
        let narrow = Area { left: 90.0, right: 110.0, ..room };
        assert_eq!(place(&[name], &[], &narrow), [None], "there is no room");
    }
}
