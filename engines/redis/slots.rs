//! Where the keys of a cluster are, as Redis' specification of clusters says
//! (<https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>).

use super::address::Address;
use super::wire::{Reply, Wire};
use kvdyno_driver::Error;

/// The number of slots of every cluster.
pub(super) const SLOTS: usize = 16384;
/// The polynomial of CRC16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The slot of a key: of the part between the first `{` and the next `}`, if there is one and it is not empty.
pub(super) fn slot_of(key: &[u8]) -> usize {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let length = rest.iter().position(|&byte| byte == b'}')?;
        Some(&rest[..length]).filter(|tag| !tag.is_empty())
    });
    let crc = tag
        .unwrap_or(key)
        .iter()
        .fold(0_u16, |crc, &byte| (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]);
    usize::from(crc) % SLOTS
}

/// The masters, and the master of each slot.
#[derive(Clone)]
pub(super) struct Slots {
    pub masters: Vec<Address>,
    /// The replicas, which may be asked too.
    pub replicas: Vec<Address>,
    of: Box<[u16]>,
}

/// A reply with its elements.
pub(super) enum Tree {
    Integer(i64),
    Text(String),
    List(Vec<Tree>),
    Other,
}

pub(super) fn tree(wire: &mut Wire) -> Result<Tree, Error> {
    let count = match wire.reply()? {
        Reply::Array(count) => count,
        Reply::Integer(number) => return Ok(Tree::Integer(number)),
        Reply::Bulk(text) | Reply::Status(text) => {
            return Ok(Tree::Text(String::from_utf8_lossy(text).into_owned()));
        }
        error @ Reply::Error(_) => return Err(error.unexpected()),
        Reply::Nil => return Ok(Tree::Other),
    };
    (0..count).map(|_| tree(wire)).collect::<Result<_, _>>().map(Tree::List)
}

impl Slots {
    /// Asks a node. All slots must have a master.
    pub fn ask(wire: &mut Wire, node: &Address) -> Result<Slots, Error> {
        let of = vec![u16::MAX; SLOTS].into();
        let mut slots = Slots { masters: Vec::new(), replicas: Vec::new(), of };
        slots.learn(wire, node)?;
        match slots.of.iter().filter(|&&place| place == u16::MAX).count() {
            0 => Ok(slots),
            count => Err(Error::new(format!("{node}: {count} of {SLOTS} slots have no master"))),
        }
    }

    /// Takes over where a node says that the slots are. The places of known masters do not change.
    pub fn learn(&mut self, wire: &mut Wire, node: &Address) -> Result<(), Error> {
        wire.request(&[b"CLUSTER", b"SLOTS"]);
        wire.send()?;
        let Tree::List(ranges) = tree(wire)? else {
            return Err(Error::new(format!("{node}: an unexpected reply to CLUSTER SLOTS")));
        };
        let address = |part: &Tree| match part {
            Tree::List(parts) => match &parts[..] {
                [Tree::Text(host), Tree::Integer(port), ..] => {
                    Some(node.beside(host, u16::try_from(*port).ok()?))
                }
                _ => None,
            },
            _ => None,
        };
        let mut replicas = Vec::new();
        for range in ranges {
            let Tree::List(parts) = range else { continue };
            let [Tree::Integer(from), Tree::Integer(to), master, others @ ..] = &parts[..] else { continue };
            let (Ok(from), Ok(to), Some(master)) =
                (usize::try_from(*from), usize::try_from(*to), address(master))
            else {
                continue;
            };
            let place = self.place(master);
            if let Some(range) = self.of.get_mut(from..=to) {
                range.fill(place as u16);
            }
            let unknown: Vec<Address> =
                others.iter().filter_map(address).filter(|other| !replicas.contains(other)).collect();
            replicas.extend(unknown);
        }
        self.replicas = replicas;
        Ok(())
    }

    /// The place of a master, which is added if it is new.
    fn place(&mut self, master: Address) -> usize {
        self.masters.iter().position(|known| *known == master).unwrap_or_else(|| {
            self.masters.push(master);
            self.masters.len() - 1
        })
    }

    /// The master of a slot.
    pub fn of(&self, slot: usize) -> usize {
        usize::from(self.of[slot])
    }

    /// A slot has moved to another master, whose place is returned.
    pub fn moved(&mut self, slot: usize, master: Address) -> usize {
        let place = self.place(master);
        self.of[slot] = place as u16;
        place
    }

    /// The place of a master that has been named for a single request.
    pub fn also(&mut self, master: Address) -> usize {
        self.place(master)
    }
}

/// What a node says when a key is not there.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// The slot has moved to the master at this host and port.
    Moved(String, u16),
    /// The slot is moving, and this key is there already.
    Ask(String, u16),
    /// The cluster will know in a moment.
    Later,
}

impl Redirect {
    /// The redirect in a reply; `None`: it is another one.
    pub fn in_reply(reply: &Reply<'_>) -> Option<Redirect> {
        match reply {
            Reply::Error(text) => Redirect::of(text),
            _ => None,
        }
    }

    /// The redirect in an error; `None`: it is another error.
    pub fn of(text: &[u8]) -> Option<Redirect> {
        let text = String::from_utf8_lossy(text);
        let mut words = text.split(' ');
        let kind = words.next()?;
        if matches!(kind, "TRYAGAIN" | "CLUSTERDOWN" | "LOADING" | "MASTERDOWN") {
            return Some(Redirect::Later);
        }
        let (host, port) = words.nth(1)?.rsplit_once(':')?;
        let (host, port) = (host.to_string(), port.parse().ok()?);
        match kind {
            "MOVED" => Some(Redirect::Moved(host, port)),
            "ASK" => Some(Redirect::Ask(host, port)),
            _ => None,
        }
    }
}
