//! The commands of README.md and docs/tour.md: each block marked as tested is run, in the order of the pages.

use super::command::kvdyno;

#[test]
fn the_commands_of_the_readme_and_of_the_tour_work_as_written() {
    let text = concat!(include_str!("../../README.md"), include_str!("../../docs/tour.md"));
    let blocks = text.split("```sh tested\n").skip(1).filter_map(|rest| rest.split("```").next());
    let commands: Vec<&str> = blocks.flat_map(str::lines).filter(|line| !line.is_empty()).collect();
    assert!(commands.len() >= 12, "the pages have lost tested commands");
    let folder = tempfile::tempdir().unwrap();
    for command in commands {
        let words = command.strip_prefix("kvdyno").expect("tested commands are kvdyno's");
        let printed = kvdyno(folder.path(), words);
        assert_eq!(printed.code, Some(0), "{command}\n{}\n{}", printed.stderr, printed.stdout);
        assert!(!printed.stdout.is_empty(), "{command} printed nothing");
    }
}
