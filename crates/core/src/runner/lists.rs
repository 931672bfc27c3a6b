//! Lists: the expected contents of each, and the keys of elements if the engine has no native lists.
//!
//! A list is used by one thread of a phase, so its elements have numbers without gaps: each must be popped once, in order.
//! An element's value is a function of its list and its number.

mod sweep;

pub(super) use sweep::sweep;

use super::spaces::NAME_BYTES;
use crate::generator::Values;
use std::sync::atomic::{AtomicU64, Ordering};

/// The version of every element: it is written once.
pub(super) const ELEMENT_VERSION: u64 = 1;

/// The numbers of elements that were pushed to a list and popped from it, including ops in flight. In its own cache line,
/// because neighbouring lists may belong to two threads.
#[repr(align(64))]
#[derive(Default)]
struct List {
    pushed: AtomicU64,
    popped: AtomicU64,
}

/// The lists of a trial. Only the thread that a list belongs to changes it.
pub(super) struct Lists(Vec<List>);

impl Lists {
    /// Empty lists.
    pub(super) fn new(count: u32) -> Lists {
        Lists((0..count.max(1)).map(|_| List::default()).collect())
    }

    /// The number of lists.
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The list for a drawn item among those that belong to thread `writer` of `writers`: those with the number `writer`
    /// modulo `writers`.
    #[inline]
    pub(super) fn of(&self, item: u64, writer: u64, writers: u64) -> u64 {
        let writers = writers.max(1);
        let own = (self.count() - writer).div_ceil(writers);
        writer + writers * ((item / writers) % own)
    }

    /// Counts a push that is about to be sent; returns the number of its element.
    #[inline]
    pub(super) fn push(&self, list: u64) -> u64 {
        add(&self.0[list as usize].pushed, 1)
    }

    /// Counts a pop that is about to be sent; returns the number of the element that it must return; none: the list is empty.
    #[inline]
    pub(super) fn pop(&self, list: u64) -> Option<u64> {
        let List { pushed, popped } = &self.0[list as usize];
        (popped.load(Ordering::Relaxed) < pushed.load(Ordering::Relaxed)).then(|| add(popped, 1))
    }

    /// Takes back a push that was counted but not run.
    pub(super) fn take_back_push(&self, list: u64) {
        add(&self.0[list as usize].pushed, u64::MAX);
    }

    /// Takes back a pop that was counted but not run.
    pub(super) fn take_back_pop(&self, list: u64) {
        add(&self.0[list as usize].popped, u64::MAX);
    }

    /// The numbers of the elements in a list, when nothing is in flight.
    pub(super) fn elements(&self, list: u64) -> std::ops::Range<u64> {
        let List { pushed, popped } = &self.0[list as usize];
        popped.load(Ordering::Acquire)..pushed.load(Ordering::Acquire)
    }

    /// Sets the elements of a list.
    pub(super) fn set_elements(&self, list: u64, elements: &std::ops::Range<u64>) {
        let List { pushed, popped } = &self.0[list as usize];
        popped.store(elements.start, Ordering::Release);
        pushed.store(elements.end, Ordering::Release);
    }

    /// The number of elements in all lists.
    pub(super) fn left(&self) -> u64 {
        (0..self.count()).map(|list| self.elements(list).end - self.elements(list).start).sum()
    }

    /// A unique number for an element of any list, from which its value is generated.
    #[inline]
    pub(super) fn element(&self, list: u64, number: u64) -> u64 {
        number * self.count() + list
    }

    /// The list of an element, and its number there.
    #[inline]
    pub(super) fn place(&self, element: u64) -> (u64, u64) {
        (element % self.count(), element / self.count())
    }

    /// The fault of a value that a pop returned; none: it is the value of the element.
    pub(super) fn fault(&self, values: &Values, element: u64, value: &[u8]) -> Option<String> {
        let (list, number) = self.place(element);
        match values.check(element, value) {
            Ok(None | Some(ELEMENT_VERSION)) => None,
            Ok(Some(version)) => Some(format!("element {number} of list {list}: version {version}")),
            Err(fault) => {
                let came = values.read_header(value).map(|(element, _)| self.place(element));
                Some(match came {
                    Some(came)
                        if came != (list, number)
                            && values.check(self.element(came.0, came.1), value).is_ok() =>
                    {
                        format!(
                            "element {} of list {} returned, but element {number} of list {list} is next",
                            came.1, came.0
                        )
                    }
                    _ => format!("element {number} of list {list}: {fault}"),
                })
            }
        }
    }
}

/// Adds to a counter and returns the old value. Only one thread changes it, so no read-modify-write is needed.
#[inline]
fn add(cell: &AtomicU64, more: u64) -> u64 {
    let before = cell.load(Ordering::Relaxed);
    cell.store(before.wrapping_add(more), Ordering::Release);
    before
}

/// Writes the name of a native list; returns its length.
#[inline]
pub(super) fn write_name(list: u64, out: &mut [u8]) -> usize {
    out[..NAME_BYTES].copy_from_slice(&(list as u16).to_be_bytes());
    NAME_BYTES
}

/// Writes the key of an element of an emulated list: the list's name and the element's number; returns its length.
#[inline]
pub(super) fn write_key(list: u64, number: u64, out: &mut [u8]) -> usize {
    let name = write_name(list, out);
    out[name..name + 8].copy_from_slice(&number.to_be_bytes());
    name + 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::{SizeSpec, ValueRules};

    #[test]
    fn every_list_belongs_to_one_thread_and_every_thread_has_one() {
        for (count, writers) in [(1, 1), (16, 1), (16, 3), (5, 5), (7, 4)] {
            let lists = Lists::new(count);
            let mut owner = vec![None; count as usize];
            for writer in 0..writers {
                for item in 0..1000 {
                    let list = lists.of(item, writer, writers);
                    let owner = owner[list as usize].get_or_insert(writer);
                    assert_eq!(*owner, writer, "{count} {writers}");
                }
            }
            assert!(owner.iter().all(Option::is_some), "{count} {writers}");
        }
    }

    #[test]
    fn elements_are_returned_in_the_order_of_their_numbers() {
        let lists = Lists::new(3);
        assert_eq!((lists.pop(1), lists.push(1), lists.push(1), lists.push(2)), (None, 0, 1, 0));
        assert_eq!((lists.pop(1), lists.left(), lists.elements(1)), (Some(0), 2, 1..2));
        lists.take_back_pop(1);
        lists.take_back_push(2);
        assert_eq!((lists.elements(1), lists.elements(2), lists.left()), (0..2, 0..0, 2));
        assert_eq!((lists.pop(1), lists.pop(1), lists.pop(1)), (Some(0), Some(1), None));
        assert_eq!(lists.place(lists.element(2, 77)), (2, 77));
    }

    #[test]
    fn a_wrong_element_is_reported() {
        let lists = Lists::new(4);
        let rules = ValueRules { size: SizeSpec::Fixed(40), compressed_share: 0.5 };
        let values = Values::new(&rules, 1).unwrap();
        let mut out = [0; 40];
        values.write(lists.element(2, 6), ELEMENT_VERSION, &mut out);
        assert_eq!(lists.fault(&values, lists.element(2, 6), &out), None);
        let text = lists.fault(&values, lists.element(2, 7), &out).unwrap();
        assert_eq!(text, "element 6 of list 2 returned, but element 7 of list 2 is next");
        out[30] ^= 1;
        let text = lists.fault(&values, lists.element(2, 7), &out).unwrap();
        assert!(text.starts_with("element 7 of list 2: "), "{text}");
    }
}
