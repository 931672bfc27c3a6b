//! Links of members of a store that can be cut: each member is in a network namespace of its own, with a link to that of the
//! trial's process.
//!
//! The trial's process leaves the machine's network for a new one, with a bridge. A member that starts makes its own from there: a
//! pair of interfaces, one end at the bridge, the other one in the member's namespace, where it is the only way out. A cut disables
//! the bridge's port at that end, so no packet passes, whoever sends it, and neither side is told. (Taking an interface down would
//! tell the member's kernel, and it takes up to a second to come back.) Namespaces have no names and nothing in the machine's own
//! network changes, so the kernel removes everything when the last process in it has ended, however it ends.

#![allow(unsafe_code, reason = "system calls")]

/// The addresses of a trial's network, without their last number: that of a member is its number.
pub const NETWORK: &str = "10.213.77";
/// The largest number of a member.
pub const MOST_LINKS: u8 = 250;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::*;
#[cfg(target_os = "linux")]
pub use linux::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::{MOST_LINKS, NETWORK};
    use crate::{checked, start};
    use std::ffi::CString;
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::net::UdpSocket;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::time::{Duration, Instant};

    /// The last number of the address of the trial's process.
    const TRIAL: u8 = 254;
    const BITS: u8 = 24;
    const BRIDGE: &str = "members";
    /// A member's own name of its link.
    const OWN_END: &str = "eth0";
    /// From linux/veth.h.
    const VETH_INFO_PEER: u16 = 1;
    /// States of a bridge's port, from linux/if_bridge.h.
    const DISABLED: u8 = 0;
    const FORWARDING: u8 = 3;
    /// Lengths of the heads of messages.
    const HEAD: usize = 16;
    const NO_FLAGS: u32 = 0;
    const UP: u32 = libc::IFF_UP as u32;

    /// The network of this process, whose members have links.
    pub struct Links(());

    impl Links {
        /// Moves this process, which must not have a second thread yet, or this thread, to a network of its own.
        pub fn enter() -> io::Result<Links> {
            unshare().map_err(|error| named("a network namespace", &error))?;
            let mut bridge = Request::link_up(BRIDGE, CREATE);
            // Without one of its own it would have that of a member, which comes and goes.
            bridge.attribute(libc::IFLA_ADDRESS, &hardware_address(TRIAL));
            bridge.nested(libc::IFLA_LINKINFO, |info| info.attribute(libc::IFLA_INFO_KIND, b"bridge"));
            bridge.send().map_err(|error| named("a bridge", &error))?;
            up("lo")?;
            set_address(BRIDGE, TRIAL)?;
            Ok(Links(()))
        }

        /// Whether a member has a link.
        pub fn has(&self, member: u8) -> bool {
            index(&link_of(member)).is_ok()
        }

        /// Cuts the link of a member.
        pub fn cut(&self, member: u8) -> io::Result<()> {
            set_port(&link_of(member), DISABLED)
        }

        /// Ends the cut.
        pub fn restore(&self, member: u8) -> io::Result<()> {
            set_port(&link_of(member), FORWARDING)
        }
    }

    /// Moves this process, or this thread, to a network with nothing but a link to the one in which it is, which has a bridge.
    pub fn join(member: u8) -> io::Result<()> {
        if !(1..=MOST_LINKS).contains(&member) {
            let text = format!("there are only {MOST_LINKS} links, and none for member {member}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let outer = namespace()?;
        unshare()?;
        let own = namespace()?;
        enter(&outer)?;
        let name = link_of(member);
        // A member that has ended leaves it until the kernel has removed its network.
        let mut old = Request::new(libc::RTM_DELLINK, NOTHING_MORE, &link_head(NO_FLAGS, NO_FLAGS));
        old.text(libc::IFLA_IFNAME, &name);
        match old.send() {
            Err(error) if error.raw_os_error() != Some(libc::ENODEV) => return Err(error),
            _ => {}
        }
        let mut link = Request::link_up(&name, CREATE);
        link.attribute(libc::IFLA_MASTER, &index(BRIDGE)?.to_ne_bytes());
        link.nested(libc::IFLA_LINKINFO, |info| {
            info.attribute(libc::IFLA_INFO_KIND, b"veth");
            info.nested(libc::IFLA_INFO_DATA, |data| {
                data.nested(VETH_INFO_PEER, |peer| {
                    // It can be up only when it has its other end.
                    peer.bytes.extend(link_head(NO_FLAGS, NO_FLAGS));
                    peer.text(libc::IFLA_IFNAME, OWN_END);
                    // The same after a restart, because others remember it.
                    peer.attribute(libc::IFLA_ADDRESS, &hardware_address(member));
                    peer.attribute(libc::IFLA_NET_NS_FD, &own.as_raw_fd().to_ne_bytes());
                });
            });
        });
        link.send().map_err(|error| named("a pair of interfaces (veth)", &error))?;
        enter(&own)?;
        up("lo")?;
        up(OWN_END)?;
        set_address(OWN_END, member)
    }

    /// What the probe sends while the link is cut.
    const LOST: &[u8] = b"lost";
    /// How long a packet of the probe may take.
    const LIMIT: Duration = Duration::from_secs(10);

    /// Sends packets over a link, with and without a cut, in networks of its own.
    pub fn probe() -> io::Result<String> {
        probe_after(Duration::ZERO)
    }

    /// The same with a pause after the cut.
    fn probe_after(pause: Duration) -> io::Result<String> {
        const MEMBER: u8 = 1;
        const OTHER: u8 = 2;
        let ends = move || -> io::Result<()> {
            let links = Links::enter()?;
            let make = |number: u8| -> io::Result<UdpSocket> {
                joined(start::thread(move || {
                    join(number)?;
                    UdpSocket::bind((format!("{NETWORK}.{number}"), 0))
                })?)
            };
            // If no link were left, the trial's kernel would forget the member's hardware address, and might keep a packet until it
            // knows it again.
            let _other = make(OTHER)?;
            let member = make(MEMBER)?;
            let trial = UdpSocket::bind((format!("{NETWORK}.{TRIAL}"), 0))?;
            arrives(&trial, &member, b"first")?;
            links.cut(MEMBER)?;
            std::thread::sleep(pause);
            trial.send_to(LOST, member.local_addr()?)?;
            links.restore(MEMBER)?;
            arrives(&trial, &member, b"second")
        };
        joined(start::thread(ends)?)?;
        Ok("packets crossed a link, and none while it was cut".into())
    }

    /// Sends a text until it arrives. An error if the packet that was sent during the cut does. On a busy machine packets come late,
    /// and after others with the same text, so others are ignored.
    fn arrives(from: &UdpSocket, to: &UdpSocket, text: &[u8]) -> io::Result<()> {
        to.set_read_timeout(Some(Duration::from_millis(20)))?;
        let (address, begun) = (to.local_addr()?, Instant::now());
        let mut found = [0; 8];
        while begun.elapsed() < LIMIT {
            from.send_to(text, address)?;
            match to.recv(&mut found) {
                Ok(count) if &found[..count] == text => return Ok(()),
                Ok(count) if &found[..count] == LOST => {
                    return Err(io::Error::other("a cut link lets packets pass"));
                }
                Ok(_) => {}
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("no packet crosses a link"))
    }

    fn joined<T>(thread: std::thread::JoinHandle<io::Result<T>>) -> io::Result<T> {
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the probe has panicked")))
    }

    fn named(what: &str, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("cannot make {what}: {error}"))
    }

    fn unshare() -> io::Result<()> {
        // SAFETY: a plain system call without pointers.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
    }

    /// The network of this thread.
    fn namespace() -> io::Result<File> {
        File::open("/proc/thread-self/ns/net")
    }

    fn enter(namespace: &File) -> io::Result<()> {
        // SAFETY: a plain system call on an open descriptor.
        checked(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
    }

    /// The name at the bridge.
    fn link_of(member: u8) -> String {
        format!("member-{member}")
    }

    fn hardware_address(number: u8) -> [u8; 6] {
        // The second bit says that nobody has given it to a device.
        [0x02, 0, 0, 0, 0, number]
    }

    fn index(name: &str) -> io::Result<u32> {
        let text = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: the text is live and ends with a zero.
        match unsafe { libc::if_nametoindex(text.as_ptr()) } {
            0 => Err(io::Error::last_os_error()),
            index => Ok(index),
        }
    }

    fn up(name: &str) -> io::Result<()> {
        Request::link_up(name, NOTHING_MORE).send()
    }

    /// Sets the state of a bridge's port.
    fn set_port(name: &str, state: u8) -> io::Result<()> {
        let mut head = link_head(NO_FLAGS, NO_FLAGS);
        head[0] = libc::AF_BRIDGE as u8;
        head[4..8].copy_from_slice(&index(name)?.to_ne_bytes());
        let mut request = Request::new(libc::RTM_SETLINK, NOTHING_MORE, &head);
        request.attribute(libc::IFLA_PROTINFO, &[state]);
        request.send()
    }

    fn set_address(name: &str, number: u8) -> io::Result<()> {
        let address: std::net::Ipv4Addr = format!("{NETWORK}.{number}")
            .parse()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut head = vec![libc::AF_INET as u8, BITS, 0, 0];
        head.extend(index(name)?.to_ne_bytes());
        let mut request = Request::new(libc::RTM_NEWADDR, CREATE, &head);
        request.attribute(libc::IFA_LOCAL, &address.octets());
        request.attribute(libc::IFA_ADDRESS, &address.octets());
        request.send()
    }

    /// `struct ifinfomsg`: flags, and which of them to change.
    fn link_head(flags: u32, changed: u32) -> [u8; 16] {
        let mut head = [0; 16];
        head[8..12].copy_from_slice(&flags.to_ne_bytes());
        head[12..].copy_from_slice(&changed.to_ne_bytes());
        head
    }

    const NOTHING_MORE: i32 = 0;
    const CREATE: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

    /// A request to the kernel about networks (rtnetlink).
    struct Request {
        bytes: Vec<u8>,
    }

    impl Request {
        fn new(kind: u16, flags: i32, head: &[u8]) -> Request {
            let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
            // `struct nlmsghdr`; the length is filled in at the end.
            let mut bytes = vec![0; HEAD];
            bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
            bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
            bytes.extend(head);
            Request { bytes }
        }

        /// An interface that is up.
        fn link_up(name: &str, flags: i32) -> Request {
            let mut request = Request::new(libc::RTM_NEWLINK, flags, &link_head(UP, UP));
            request.text(libc::IFLA_IFNAME, name);
            request
        }

        fn attribute(&mut self, kind: u16, value: &[u8]) {
            self.nested(kind, |inner| inner.bytes.extend(value));
        }

        fn text(&mut self, kind: u16, text: &str) {
            self.attribute(kind, &[text.as_bytes(), b"\0"].concat());
        }

        fn nested(&mut self, kind: u16, fill: impl FnOnce(&mut Request)) {
            let start = self.bytes.len();
            self.bytes.extend([0, 0]);
            self.bytes.extend(kind.to_ne_bytes());
            fill(self);
            let length = (self.bytes.len() - start) as u16;
            self.bytes[start..start + 2].copy_from_slice(&length.to_ne_bytes());
            self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        }

        /// Sends it and waits for the answer.
        fn send(mut self) -> io::Result<()> {
            let length = self.bytes.len() as u32;
            self.bytes[..4].copy_from_slice(&length.to_ne_bytes());
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            // SAFETY: a plain system call, which returns a new descriptor that has no other owner.
            let mut socket = unsafe {
                let socket = checked(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?;
                File::from(OwnedFd::from_raw_fd(socket))
            };
            socket.write_all(&self.bytes)?;
            // A head, then `struct nlmsgerr`, which begins with the error; 0: done.
            let mut answer = [0; 4096];
            let count = socket.read(&mut answer)?;
            let error = answer.get(HEAD..HEAD + 4).filter(|_| count >= HEAD + 4);
            let error = error.and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
            match error {
                Some(0) => Ok(()),
                Some(error) => Err(io::Error::from_raw_os_error(-error)),
                None => Err(io::Error::other("the kernel's answer is too short")),
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_request_is_what_the_kernel_reads() {
            let mut request = Request::new(7, NOTHING_MORE, &[9; 4]);
            request.nested(3, |inner| inner.text(2, "ab"));
            let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u8;
            let mut expected = vec![0, 0, 0, 0, 7, 0, flags, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9];
            // The length of the outer one includes what fills up the inner one.
            expected.extend([12, 0, 3, 0, 7, 0, 2, 0, b'a', b'b', 0, 0]);
            assert_eq!(request.bytes, expected);
        }

        #[test]
        fn a_late_packet_is_none_that_crossed_a_cut_link() {
            let ends = || UdpSocket::bind("127.0.0.1:0").unwrap();
            let (trial, member) = (ends(), ends());
            for _ in 0..3 {
                trial.send_to(b"first", member.local_addr().unwrap()).unwrap();
            }
            arrives(&trial, &member, b"second").unwrap();
            trial.send_to(LOST, member.local_addr().unwrap()).unwrap();
            let text = arrives(&trial, &member, b"third").unwrap_err().to_string();
            assert_eq!(text, "a cut link lets packets pass");
        }

        #[test]
        fn no_packet_of_the_probe_is_kept_until_the_cut_has_ended() {
            // In a thread of its own, which leaves the network of the tests.
            if std::thread::spawn(unshare).join().unwrap().is_err() {
                return;
            }
            // Long enough for the kernel to notice what has changed.
            for ms in [0, 60, 60, 60] {
                probe_after(Duration::from_millis(ms)).unwrap();
            }
        }

        #[test]
        fn only_numbers_of_members_have_links() {
            let refused = |number| join(number).map_err(|error| error.kind());
            assert_eq!(refused(0), Err(io::ErrorKind::InvalidInput));
            assert_eq!(refused(TRIAL), Err(io::ErrorKind::InvalidInput));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;

    fn no_linux<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "only on Linux"))
    }

    /// Never exists here.
    pub struct Links(std::convert::Infallible);

    impl Links {
        /// Not possible here.
        pub fn enter() -> io::Result<Links> {
            no_linux()
        }

        /// Whether a member has a link.
        pub fn has(&self, _member: u8) -> bool {
            match self.0 {}
        }

        /// Cuts the link of a member.
        pub fn cut(&self, _member: u8) -> io::Result<()> {
            match self.0 {}
        }

        /// Ends the cut.
        pub fn restore(&self, _member: u8) -> io::Result<()> {
            match self.0 {}
        }
    }

    /// Not possible here.
    pub fn join(_member: u8) -> io::Result<()> {
        no_linux()
    }

    /// Not possible here.
    pub fn probe() -> io::Result<String> {
        no_linux()
    }
}
