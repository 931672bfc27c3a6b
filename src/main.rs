//! The entry point of the `kvdyno` command.

fn main() -> std::process::ExitCode {
    kvdyno::main()
}
