//! Tests of the endpoint: responses, refused requests, and clients that try to block it.

use super::super::tests::{state, tick};
use super::*;

fn started() -> Server {
    let mut state = state();
    state.tick(&tick(500));
    Server::start(address("0").unwrap(), Arc::new(Mutex::new(state))).unwrap()
}

fn response(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn figures_are_in_the_text_format_with_their_types() {
    let server = started();
    let text = response(&server, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("Content-Type: text/plain; version=0.0.4"), "{text}");
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(&format!("Content-Length: {}", body.len())));
    for wanted in [
        "kvdyno_trials{state=\"running\"} 1",
        "kvdyno_ops_per_second{engine=\"",
        "kvdyno_phase_ops_total{",
        "quantile=\"0.99\"} 0.0000015",
        "kvdyno_rss_bytes{",
        "kvdyno_result_ops_per_second{",
    ] {
        assert!(body.contains(wanted), "no {wanted} in\n{body}");
    }
    let mut families: Vec<&str> = Vec::new();
    for line in body.lines() {
        if let Some(name) = line.strip_prefix("# TYPE ") {
            families.push(name.split(' ').next().unwrap());
        } else if !line.starts_with('#') {
            let name = line.split(['{', ' ']).next().unwrap();
            assert_eq!(families.last(), Some(&name), "a sample outside its family: {line}");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
    let count = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), count, "duplicate family");
}

#[test]
fn other_paths_and_methods_are_refused_in_a_line() {
    let server = started();
    assert!(response(&server, "GET / HTTP/1.1\r\n\r\n").contains("404 Not Found"));
    assert!(response(&server, "POST /metrics HTTP/1.1\r\n\r\n").contains("405 Method"));
    let head = response(&server, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.contains("200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(response(&server, "GET /metrics?x=1 HTTP/1.1\r\n\r\n").contains("kvdyno_info"));
    let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(9_000));
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let _ = stream.write_all(long.as_bytes());
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    assert!(text.is_empty(), "an incomplete request gets no response");
}

#[test]
fn silent_clients_do_not_block_others() {
    let server = started();
    let is_answered = || {
        let silent: Vec<TcpStream> =
            (0..3 * PLACES).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
        let began = Instant::now();
        let answer = || response(&server, "GET /metrics HTTP/1.1\r\n\r\n").contains("kvdyno_info");
        let is_answered = (0..5).all(|_| answer()) && began.elapsed() < PATIENCE;
        drop(silent);
        is_answered
    };
    // A busy machine may be late, too.
    assert!((0..5).any(|_| is_answered()), "requests wait for silent clients");
}

#[test]
fn labels_are_escaped() {
    assert_eq!(text::escaped("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
}

#[test]
fn a_port_alone_means_the_loopback_address() {
    assert_eq!(address("9187").unwrap().to_string(), "127.0.0.1:9187");
    assert_eq!(address("localhost:9187").unwrap().to_string(), "127.0.0.1:9187");
    assert_eq!(address("[::1]:9187").unwrap().to_string(), "[::1]:9187");
    assert!(!address("0.0.0.0:9187").unwrap().ip().is_loopback());
    for wrong in ["", "x", "99999", "127.0.0.1", "example.org:80", "localhost:"] {
        assert_eq!(address(wrong), None, "{wrong}");
    }
}

#[test]
fn a_dropped_server_stops_listening() {
    let server = started();
    let address = server.address();
    drop(server);
    // A process that another test starts may inherit it for a moment.
    let end = Instant::now() + 20 * PATIENCE;
    while TcpListener::bind(address).is_err() {
        assert!(Instant::now() < end, "{address} is still in use");
        std::thread::sleep(Duration::from_millis(10));
    }
}
