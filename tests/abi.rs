//! The header and its Rust mirror agree: a C program prints the layout and the constants of driver.h, and this test
//! compares them with driver/rust/src/abi.rs.

use kvdyno_driver::abi::*;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::process::Command;

macro_rules! fields {
    ($list:ident, $type:ident: $($field:ident),+ $(,)?) => {
        $list.push((format!("sizeof {}", stringify!($type)), size_of::<$type>() as u64));
        $($list.push((format!("{}.{}", stringify!($type), stringify!($field)), offset_of!($type, $field) as u64));)+
    };
}

macro_rules! constants {
    ($list:ident: $($name:ident),+ $(,)?) => {
        $($list.push((stringify!($name).to_string(), $name as u64));)+
    };
}

/// Every struct, field and constant of the mirror.
fn mirror() -> Vec<(String, u64)> {
    let mut list = Vec::new();
    fields!(list, kv_op: kind, slot, flags, keyspace, split, key, value, out, key_length, value_length, out_size,
        limit, due, user, start, end, length, needed, detail, rows, retries, status, reserved);
    fields!(list, kv_batch: ops, count, done, start, deadline, stop, waited, clock, error_op, error);
    fields!(list, kv_setting: name, value);
    fields!(list, kv_index: keyspace, index_keyspace, from, length, clustering);
    fields!(list, kv_config: abi, size, path, level, flags, cache_bytes, expected_rows, disk_limit_bytes,
        key_size_max, key_size_fixed, value_size_max, threads, keyspaces, index_count, indexes, settings,
        setting_count, kinds, op_flags, clock);
    fields!(list, kv_opened: size, level, capabilities, cache_bytes, version, compression, settings, error);
    fields!(list, kv_arena: base, size);
    fields!(list, kv_driver: abi, size, name, engine, language, family, capabilities, levels, key_size_max,
        option_count, options, open, session, execute, session_end, maintain, stats, close, drive);
    fields!(list, kv_drivers: abi, count, drivers);
    constants!(list: KV_ABI, KV_TEXT, KV_NONE, KV_PROCESS, KV_POWER, KV_DEFAULT, KV_NOTHING, KV_GET, KV_PUT,
        KV_DELETE, KV_SCAN, KV_MERGE, KV_BEGIN, KV_COMMIT, KV_ABORT, KV_DROP, KV_PUSH, KV_POP, KV_JOIN, KV_ATOMIC, KV_NEW,
        KV_REVERSE, KV_PREFIX, KV_KEYS, KV_RESUME, KV_HOLD, KV_TOUCH, KV_APPEND, KV_STRONG, KV_OK, KV_NOT_FOUND,
        KV_EXISTS, KV_SHORT, KV_CONFLICT, KV_ABORTED, KV_FULL, KV_TOO_LARGE, KV_UNSUPPORTED, KV_NOT_RUN, KV_ERROR,
        KV_CLOCK_MONOTONIC, KV_CLOCK_COUNTER, KV_ORDERED, KV_CAN_REVERSE, KV_CAN_PREFIX, KV_MULTI_GET,
        KV_TRANSACTION, KV_TRANSACTION_READS, KV_MERGE_ADD, KV_MERGE_APPEND, KV_CAN_DELETE, KV_DELETE_TELLS,
        KV_OVERWRITE, KV_CAN_NEW, KV_KEYSPACES, KV_COLLECTIONS, KV_TIME_TO_LIVE, KV_FIXED_KEY_SIZE, KV_KEEPS_KEY,
        KV_KEEPS_VALUE, KV_IN_MEMORY, KV_SINGLE_WRITER, KV_SCAN_BLOCKS_WRITES, KV_CAN_HOLD,
        KV_CAN_LONG_TRANSACTION, KV_CAN_TOUCH, KV_SINGLE_THREAD, KV_STORES_NOTHING, KV_INDEXES, KV_LISTS,
        KV_EVICTS, KV_LIVE_STATS, KV_NO_EMPTY_VALUES, KV_CREATE, KV_READ_ONLY,
        KV_FLUSH, KV_COMPACT, KV_SETTLE);
    list
}

/// The C program: a line `name value` for each entry of the mirror.
fn program(list: &[(String, u64)]) -> String {
    let mut text =
        String::from("#include \"driver.h\"\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, _) in list {
        let value = match (name.strip_prefix("sizeof "), name.split_once('.')) {
            (Some(name), _) => format!("sizeof({name})"),
            (None, Some((name, field))) => format!("offsetof({name}, {field})"),
            (None, None) => name.clone(),
        };
        text += &format!("printf(\"%s=%llu\\n\", \"{name}\", (unsigned long long)({value}));\n");
    }
    text + "return 0;\n}\n"
}

#[test]
fn header_and_mirror_have_the_same_layout_and_constants() {
    let list = mirror();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("layout.c");
    let binary = folder.path().join("layout");
    std::fs::write(&source, program(&list)).unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/driver/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-Werror", "-I", include]).arg(&source).arg("-o").arg(&binary);
    let mut compiled = compiler.spawn().expect("a C compiler named cc");
    assert!(compiled.wait().unwrap().success(), "driver.h does not compile as C11");
    let output = Command::new(&binary).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let actual: BTreeMap<&str, u64> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect();
    for (name, wanted) in &list {
        assert_eq!(actual.get(name.as_str()), Some(wanted), "{name}: header against mirror");
    }
}

/// A name that the header defines and the mirror lacks would be a hole in the test above.
#[test]
fn every_constant_of_the_header_is_in_the_mirror() {
    let header = include_str!("../driver/include/driver.h");
    let known: Vec<String> = mirror().into_iter().map(|(name, _)| name).collect();
    let is_constant = |line: &str| {
        let line = line.trim();
        let name = line.strip_prefix("#define ").unwrap_or(line);
        let end = name.find(|letter: char| {
            !(letter.is_ascii_uppercase() || letter == '_' || letter.is_ascii_digit())
        })?;
        let (name, rest) = name.split_at(end);
        let is_definition = line.starts_with("#define ") && rest.starts_with(' ') || rest.starts_with(" = ");
        (name.starts_with("KV_") && is_definition && name != "KV_SAME").then(|| name.to_string())
    };
    let missing: Vec<String> =
        header.lines().filter_map(is_constant).filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "in the header only: {missing:?}");
}

#[test]
fn the_header_is_valid_cpp_too() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("use.cc");
    std::fs::write(&source, "#include \"driver.h\"\n#include \"kit.h\"\nint main() { return 0; }\n").unwrap();
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/driver/include");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-Wall", "-fsyntax-only", "-I", include]).arg(&source);
    match compiler.status() {
        Ok(status) => assert!(status.success(), "driver.h or kit.h does not compile as C++17"),
        Err(_) => eprintln!("skipped: no C++ compiler"),
    }
}
