//! The command.

fn main() -> std::process::ExitCode {
    kvdyno::main()
}
