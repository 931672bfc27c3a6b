//! The commands of README.md: each block marked as tested is run, in the order of the page.

use super::command::kvdyno;

#[test]
fn the_commands_of_the_readme_work_as_written() {
    let text = include_str!("../../README.md");
    let blocks = text.split("```sh tested\n").skip(1).filter_map(|rest| rest.split("```").next());
    let commands: Vec<&str> = blocks.flat_map(str::lines).filter(|line| !line.is_empty()).collect();
    assert!(commands.len() >= 6, "the README has lost its tested commands");
    let folder = tempfile::tempdir().unwrap();
    for command in commands {
        let words = command.strip_prefix("kvdyno").expect("tested commands are kvdyno's");
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(0), "{command}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(!printed.stdout.is_empty(), "{command} printed nothing");
    }
}
