//! URLs, replies in pieces, levels, ownership of a database, and the life of a server; the last with redis-server.

use super::address::{Address, Place};
use super::cluster_nodes::{Nodes, Wish};
use super::facts::Facts;
use super::server::{Server, Wanted};
use super::tls::Files;
use super::wire::{Reply, Wire};
use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Whether redis-server is installed, which CI requires.
pub(super) fn is_here() -> bool {
    let is_here = std::process::Command::new("redis-server").arg("--version").output().is_ok();
    assert!(is_here || std::env::var("CI").as_deref() != Ok("true"), "CI needs redis-server");
    if !is_here {
        println!("skipped: redis-server is not installed");
    }
    is_here
}

fn started(folder: &Path, level: Level) -> Server {
    Wanted {
        program: "redis-server",
        engine: "",
        folder,
        level,
        as_shipped: false,
        password: None,
        node: None,
        member: None,
    }
    .start()
    .unwrap()
}

/// The nodes of a cluster in a folder of their own.
pub(super) fn nodes(name: &str, masters: usize, replicas: usize) -> (std::path::PathBuf, Arc<Nodes>) {
    let folder = folder(name);
    let wish = Wish {
        program: "redis-server",
        folder: &folder,
        is_new: true,
        level: Level::Process,
        as_shipped: false,
        password: None,
        masters,
        replicas,
        // Nothing fails by itself on a busy machine.
        node_timeout_ms: 15_000,
    };
    let nodes = Nodes::start(&wish).unwrap();
    (folder, Arc::new(nodes))
}

fn wire(server: &Server) -> Wire {
    Wire::connect(&server.address, &Files::default()).unwrap()
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("kvdyno-redis-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn urls_are_taken_apart_and_shown_without_the_password() {
    let address = Address::parse("rediss://me:p%40ss:w@db.example:7000/3").unwrap();
    assert_eq!(address.place, Place::Tcp { host: "db.example".into(), port: 7000, is_tls: true });
    assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("me"), Some("p@ss:w")));
    assert_eq!(format!("{address} {address:?}"), ["rediss://me@db.example:7000/3"; 2].join(" "));
    assert!(!address.is_local());
    for (url, shown) in [
        ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
        ("redis://:secret@localhost:1", "redis://localhost:1/0"),
        ("redis://[::1]:7/2", "redis://[::1]:7/2"),
        ("unix:///tmp/a.sock?db=4", "unix:///tmp/a.sock?db=4"),
    ] {
        let address = Address::parse(url).unwrap();
        assert_eq!((address.to_string().as_str(), address.is_local()), (shown, true));
    }
    for url in [
        "localhost",
        "http://h",
        "redis://",
        "redis://:hunter2@h:x",
        "redis://:hunter2@h/x",
        "unix://a",
        "redis://:%zz@h",
    ] {
        let text = Address::parse(url).unwrap_err().text;
        assert!(text.contains("option url") && !text.contains("hunter2"), "{url}: {text}");
    }
}

/// A connection to a peer that answers and then sends these bytes, one at a time.
fn speaker(bytes: &'static [u8]) -> Wire {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in b"+PONG\r\n".iter().chain(bytes) {
            stream.write_all(std::slice::from_ref(byte)).unwrap();
        }
        let _ = stream.read(&mut [0; 100]);
    });
    Wire::connect(&Address::local(port, None), &Files::default()).unwrap()
}

/// The URL of a peer that does this with its connections.
fn peer(scheme: &str, serve: impl Fn(std::net::TcpStream) + Send + Sync + 'static) -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
    Address::parse(&format!("{scheme}://127.0.0.1:{port}")).unwrap()
}

/// Sends bytes again and again, after the client has said something, as long as it listens.
fn says(bytes: &'static [u8], pause: Option<Duration>) -> impl Fn(std::net::TcpStream) + Send + Sync {
    move |mut stream| {
        let _ = stream.read(&mut [0; 1000]);
        while stream.write_all(bytes).is_ok() {
            let Some(pause) = pause else { return };
            std::thread::sleep(pause);
        }
    }
}

#[test]
fn what_never_answers_or_speaks_another_protocol_is_one_line_with_its_address() {
    const LIMIT: Duration = Duration::from_millis(300);
    let mute = |mut stream: std::net::TcpStream| _ = stream.read_to_end(&mut Vec::new());
    let cases: [(Address, &str); 11] = [
        (peer("redis", mute), "PING: no answer within 0.3 s"),
        (
            peer("rediss", mute),
            "TLS: no answer to the handshake within 0.3 s; a server without TLS is named by redis://",
        ),
        (peer("redis", drop), "PING: the "),
        (peer("rediss", drop), "TLS: the server ends the connection in the handshake"),
        (
            peer("redis", says(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", None)),
            "PING: this is not a server of the Redis protocol: it sent `HTTP/1.1 400 Bad Request`",
        ),
        (peer("rediss", says(b"-ERR unknown command\r\n", None)), "TLS: the server does not speak TLS"),
        (peer("redis", says(b"\x15\x03\x01\x00\x02\x02\x46", None)), "it expects TLS (rediss://)"),
        (
            peer("redis", says(b"\x00\xff\x17", None)),
            "not a server of the Redis protocol: it sent `\\x00\\xff\\x17`",
        ),
        // Each wait of these is short, and all together are not.
        (peer("redis", says(b"+", Some(LIMIT / 10))), "PING: no answer within 0.3 s"),
        (peer("rediss", says(b"\x16", Some(LIMIT / 10))), "TLS: "),
        (
            peer("redis", says(&[b'+'; 65536], Some(Duration::ZERO))),
            "not a server of the Redis protocol: it sent `++++",
        ),
    ];
    for (address, expected) in &cases {
        let error = Wire::greet(address, &Files::default(), LIMIT, true).map(drop).unwrap_err().text;
        assert!(
            error.starts_with(&format!("{address}: ")) && error.contains(expected),
            "{expected}: {error}"
        );
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let missing =
        Address::local(TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port(), None);
    let error = Wire::connect(&missing, &Files::default()).map(drop).unwrap_err().text;
    assert!(error.starts_with(&format!("cannot connect to {missing}: Connection refused")), "{error}");
}

#[test]
fn a_password_that_is_missing_or_wrong_is_told_at_once() {
    for (reply, password, expected) in [
        (&b"-NOAUTH Authentication required.\r\n"[..], None, Some("PING: the server replied: NOAUTH")),
        (
            b"-WRONGPASS invalid username-password pair\r\n",
            Some("x"),
            Some("AUTH: the server replied: WRONGPASS"),
        ),
        (b"-ERR unknown command 'PING'\r\n", None, None),
        (b"-NOPERM this user has no permissions to run the 'ping' command\r\n", None, None),
        (b"+PONG\r\n", None, None),
    ] {
        let address = Address { password: password.map(String::from), ..peer("redis", says(reply, None)) };
        let error = Wire::connect(&address, &Files::default()).map(drop).err().map(|error| error.text);
        let is_told = error.as_ref().map(|text| text.contains(expected.unwrap_or("nothing")));
        assert_eq!(is_told, expected.map(|_| true), "{error:?}");
    }
}

#[test]
fn memory_grows_with_what_has_come_and_not_with_what_is_announced() {
    let mut wire = speaker(b"$999999999999\r\nabc");
    // The peer closes the connection after what it has sent: the length is not there, and no memory was taken for it.
    wire.send().unwrap();
    let error = wire.ask(&[&[b'x'; 100]]).map(drop).unwrap_err().text;
    assert!(error.contains("connection"), "{error}");
}

#[test]
fn replies_are_read_however_they_come() {
    let mut wire =
        speaker(b"+OK\r\n-ERR no\r\n:-12\r\n$5\r\na\r\nbc\r\n$-1\r\n*2\r\n$0\r\n\r\n*-1\r\nHTTP/1.1 400\r\n");
    assert_eq!(wire.reply().unwrap(), Reply::Status(b"OK"));
    assert_eq!(wire.reply().unwrap(), Reply::Error(b"ERR no"));
    assert_eq!(wire.reply().unwrap(), Reply::Integer(-12));
    assert_eq!(wire.reply().unwrap(), Reply::Bulk(b"a\r\nbc"));
    assert_eq!(wire.reply().unwrap(), Reply::Nil);
    assert_eq!(wire.reply().unwrap(), Reply::Array(2));
    assert_eq!(wire.reply().unwrap(), Reply::Bulk(b""));
    assert_eq!(wire.reply().unwrap(), Reply::Nil);
    assert!(wire.reply().unwrap_err().text.contains("not a server of the Redis protocol"));
}

#[test]
fn values_larger_than_any_buffer_come_whole() {
    if !is_here() {
        return;
    }
    let folder = folder("large");
    let server = started(&folder, Level::None);
    let mut wire = wire(&server);
    let large = vec![7; 3 << 20];
    wire.request(&[b"SET", b"large", &large]);
    wire.request(&[b"GET", b"large"]);
    wire.request(&[b"GET", b"absent"]);
    wire.send().unwrap();
    assert_eq!(wire.reply().unwrap(), Reply::Status(b"OK"));
    assert!(wire.reply().unwrap() == Reply::Bulk(&large));
    assert_eq!(wire.reply().unwrap(), Reply::Nil);
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_level_that_changes_keeps_what_is_there() {
    if !is_here() {
        return;
    }
    let folder = folder("levels");
    let mut count = 0;
    for level in [Level::None, Level::Power, Level::Process, Level::None, Level::None, Level::Process] {
        let server = started(&folder, level);
        let mut wire = wire(&server);
        server.keep_log(&mut wire, level).unwrap();
        assert_eq!(Facts::ask(&mut wire).unwrap().level(), Some(level));
        assert_eq!(wire.ask(&[b"DBSIZE"]).unwrap(), Reply::Integer(count), "before {level:?}");
        count += 1;
        wire.ask(&[b"SET", count.to_string().as_bytes(), b"x"]).unwrap();
        assert_eq!(server.flush(&mut wire, level).unwrap(), Status::Ok);
        server.stop(&mut wire, level == Level::None).unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_snapshot_is_made_after_one_that_is_being_made() {
    if !is_here() {
        return;
    }
    let folder = folder("snapshot");
    let server = started(&folder, Level::None);
    let mut wire = wire(&server);
    let delay = |wire: &mut Wire, micros: &[u8]| {
        wire.ask(&[b"CONFIG", b"SET", b"rdb-key-save-delay", micros]).unwrap();
    };
    for number in 0..20 {
        wire.ask(&[b"SET", number.to_string().as_bytes(), b"x"]).unwrap();
    }
    // On a busy machine it may be made before the next command.
    let is_late = |wire: &mut Wire| {
        delay(wire, b"20000");
        wire.ask(&[b"BGSAVE"]).unwrap();
        delay(wire, b"0");
        wire.ask(&[b"SET", b"last", b"x"]).unwrap();
        wire.ask(&[b"SAVE"]).is_err_and(|error| error.text.contains("already in progress"))
    };
    assert!((0..20).any(|_| is_late(&mut wire)));
    assert_eq!(server.flush(&mut wire, Level::None).unwrap(), Status::Ok);
    drop(server);
    let server = started(&folder, Level::None);
    assert_eq!(self::wire(&server).ask(&[b"DBSIZE"]).unwrap(), Reply::Integer(21));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_server_that_writes_its_first_log_is_stopped_when_it_has_written_it() {
    if !is_here() {
        return;
    }
    let folder = folder("first-log");
    let server = started(&folder, Level::None);
    let mut wire = wire(&server);
    wire.ask(&[b"SET", b"key", b"value"]).unwrap();
    // As a replica does that has just been given its data, but for a second: the delay is for each key, in microseconds.
    wire.ask(&[b"CONFIG", b"SET", b"rdb-key-save-delay", b"1000000"]).unwrap();
    wire.ask(&[b"CONFIG", b"SET", b"appendonly", b"yes"]).unwrap();
    server.stop(&mut wire, false).unwrap();
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged() {
    if !is_here() {
        return;
    }
    let folder = folder("kill");
    for level in [Level::Process, Level::Power] {
        let server = started(&folder, level);
        let mut wire = wire(&server);
        wire.ask(&[b"FLUSHDB"]).unwrap();
        for number in 0..200 {
            wire.ask(&[b"SET", number.to_string().as_bytes(), b"x"]).unwrap();
        }
        // It is killed with signal 9.
        drop(server);
        let server = started(&folder, level);
        let mut wire = self::wire(&server);
        assert_eq!(wire.ask(&[b"DBSIZE"]).unwrap(), Reply::Integer(200), "{level:?}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_session_with_a_server_that_has_ended_says_how_it_ended() {
    if !is_here() {
        return;
    }
    let folder = folder("ended");
    let server = started(&folder, Level::Process);
    let (address, process) = (server.address.clone(), server.process());
    let database = Redis {
        control: Mutex::new(wire(&server)),
        server: Some(server),
        address,
        files: Files::default(),
        level: Level::Process,
        is_marked: false,
        has_multi_get: false,
        value_size_max: 100,
    };
    assert!(database.session().is_ok());
    // SAFETY: a system call without memory; the process is a child that was not waited for.
    unsafe { libc::kill(process as i32, libc::SIGKILL) };
    let refused = std::iter::repeat_with(|| database.session()).find_map(Result::err).unwrap().text;
    assert!(refused.contains("redis-server has ended (signal: 9"), "{refused}");
    drop(database);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn an_error_has_the_line_of_the_log_that_says_why() {
    if !is_here() {
        return;
    }
    let folder = folder("says-why");
    let server = started(&folder, Level::None);
    let lines =
        ["7:M # Fatal: Can't initialize Background Jobs.", "7:M # Redis is now ready to exit, bye bye..."];
    std::fs::write(folder.join("server.log"), lines.join("\n")).unwrap();
    let text = server.failed("did not start").text;
    assert_eq!(text, format!("redis-server did not start; its last message: {}", lines[0]));
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_cluster_that_does_not_form_has_the_end_of_its_node_as_the_reason() {
    if !is_here() {
        return;
    }
    let (folder, nodes) = nodes("killed", 1, 0);
    assert_eq!(nodes.explained(Error::new("cannot connect")).text, "cannot connect");
    // SAFETY: a system call without memory; the process is a child that was not waited for.
    unsafe { libc::kill(nodes.first().process() as i32, libc::SIGKILL) };
    let text = nodes.explained(Error::new("cannot connect")).text;
    assert!(text.starts_with("redis-server has ended (signal: 9 (SIGKILL))"), "{text}");
    drop(nodes);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn levels_of_other_servers_are_what_they_say_and_no_more() {
    if !is_here() {
        return;
    }
    let folder = folder("others");
    let server = started(&folder, Level::Process);
    let mut wire = wire(&server);
    for (fsync, level, is_refused) in
        [("always", Level::Power, false), ("no", Level::Process, false), ("everysec", Level::None, true)]
    {
        wire.ask(&[b"CONFIG", b"SET", b"appendfsync", fsync.as_bytes()]).unwrap();
        let facts = Facts::ask(&mut wire).unwrap();
        assert_eq!(facts.level(), Some(level), "{fsync}");
        let asked = facts.level_for(Level::Process);
        assert_eq!(asked.is_err(), is_refused, "{fsync}");
        if let Err(error) = asked {
            assert!(error.text.contains("appendfsync everysec"), "{}", error.text);
            assert_eq!(error.status, Status::Unsupported);
        }
        assert_eq!(facts.class(true), "server, one machine");
        assert_eq!(facts.class(false), "server, over a network");
    }
    // A user who may not query is told so, and gets no guarantee.
    wire.ask(&[b"ACL", b"SETUSER", b"guest", b"on", b">guest", b"~*", b"+@all", b"-config"]).unwrap();
    let guest =
        Address { user: Some("guest".into()), password: Some("guest".into()), ..server.address.clone() };
    let facts = Facts::ask(&mut Wire::connect(&guest, &Files::default()).unwrap()).unwrap();
    assert_eq!((facts.level(), facts.may_ask), (None, false));
    assert!(facts.level_for(Level::Process).unwrap_err().text.contains("does not allow this user to query"));
    assert_eq!(facts.level_for(Level::None).unwrap(), Level::None);
    drop(server);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_cannot_be_started_says_what_to_install() {
    let folder = folder("absent");
    let wanted = |program| Wanted {
        program,
        engine: "",
        folder: &folder,
        level: Level::None,
        as_shipped: false,
        password: None,
        node: None,
        member: None,
    };
    let text = wanted("no-such-server").start().err().unwrap().text;
    assert!(
        text.contains("`no-such-server` is not on the PATH") && text.contains("apt-get install"),
        "{text}"
    );
    let text = wanted("false").start().err().unwrap().text;
    assert!(text.contains("false did not start (exit status: 1)"), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn slots_are_those_of_redis() {
    use super::slots::{Redirect, slot_of};
    // CLUSTER KEYSLOT of redis-server 7.0.15.
    for (key, slot) in
        [("", 0), ("123456789", 12739), ("foo", 12182), ("{user1000}.following", 3443), ("a{}b", 13694)]
    {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
    assert_eq!(slot_of(b"{user1000}.followers"), slot_of(b"user1000"));
    assert_eq!(slot_of(b"x{{a}}"), slot_of(b"{a"));
    assert_eq!(slot_of(b"x{open"), slot_of(b"x{open"));
    assert_eq!(Redirect::of(b"MOVED 3999 127.0.0.1:6381"), Some(Redirect::Moved("127.0.0.1".into(), 6381)));
    assert_eq!(Redirect::of(b"ASK 3999 ::1:6381"), Some(Redirect::Ask("::1".into(), 6381)));
    assert_eq!(Redirect::of(b"CLUSTERDOWN The cluster is down"), Some(Redirect::Later));
    assert_eq!(Redirect::of(b"ERR unknown command"), None);
}
