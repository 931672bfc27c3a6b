//! `kvdyno keys make` and `kvdyno keys shuffle`: key files for workloads with `key.file`.

use super::error::CliError;
use super::folders::write_new;
use super::number::number;
use clap::Subcommand;
use kvdyno_core::generator::{
    KeyFile, KeyRules, Keys, LEAST_KEY_BYTES, MOST_KEY_BYTES, MOST_KEY_FILE_BYTES, Permutation, Random,
    SizeSpec,
};
use kvdyno_measure::read_limited;
use kvdyno_measure::text::{parse_bytes, parse_count};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Create or shuffle a key file. A workload reads it with `--set key.file=FILE`.
#[derive(Debug, clap::Args)]
pub(super) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

/// The commands for key files.
#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Create a file of distinct random keys. The same seed creates the same file. Workloads read it with
    /// `--set key.file=FILE`.
    Make(MakeArgs),
    /// Shuffle the keys of a file. The same seed produces the same order.
    ///
    /// kvdyno itself does not need shuffled files: a phase with `distribution = "permutation"` uses the keys in shuffled
    /// order and does not change the file. This command is for files that other programs also read.
    Shuffle(ShuffleArgs),
}

#[derive(Debug, clap::Args)]
struct MakeArgs {
    /// File to create. It must not exist.
    file: PathBuf,
    /// Number of keys, such as `100k`.
    #[arg(long, value_parser = count, value_name = "N")]
    count: u64,
    /// Size of a key, such as `16`.
    #[arg(long, value_parser = key_size, value_name = "BYTES")]
    key_size: u64,
    /// Seed of the random keys.
    #[arg(long, default_value_t = 1, value_parser = number(0..=u64::MAX))]
    seed: u64,
}

#[derive(Debug, clap::Args)]
struct ShuffleArgs {
    /// File to shuffle.
    file: PathBuf,
    /// Size of a key, such as `16`.
    #[arg(long, value_parser = key_size, value_name = "BYTES")]
    key_size: u64,
    /// Shuffle only the first N keys and leave the others in place [default: all].
    #[arg(long, value_parser = count, value_name = "N")]
    count: Option<u64>,
    /// Seed of the random order.
    #[arg(long, default_value_t = 1, value_parser = number(0..=u64::MAX))]
    seed: u64,
    /// Write to OUT, which must not exist, and do not change FILE.
    #[arg(long, value_name = "OUT")]
    to: Option<PathBuf>,
}

fn count(text: &str) -> Result<u64, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    if count > 0 { Ok(count) } else { Err("expected 1 or more".into()) }
}

fn key_size(text: &str) -> Result<u64, String> {
    let size = parse_bytes(text).map_err(|error| error.to_string())?;
    let sizes = u64::from(LEAST_KEY_BYTES)..=u64::from(MOST_KEY_BYTES);
    if sizes.contains(&size) {
        Ok(size)
    } else {
        Err(format!("a key must have {LEAST_KEY_BYTES} to {MOST_KEY_BYTES} bytes"))
    }
}

/// Runs the command.
pub(super) fn run(args: &KeysArgs) -> Result<u8, CliError> {
    match &args.command {
        KeysCommand::Make(args) => make(args),
        KeysCommand::Shuffle(args) => shuffle(args),
    }
}

/// How many distinct numbers the leading bytes of a key can hold, and the number of these bytes.
fn lead(key_size: u64) -> (u64, usize) {
    // Only 63 of the 64 bits: the maximum of a permutation.
    if key_size >= 8 { (1 << 63, 8) } else { (1 << (8 * key_size), key_size as usize) }
}

fn make(args: &MakeArgs) -> Result<u8, CliError> {
    let (numbers, lead) = lead(args.key_size);
    if args.count > numbers {
        let text = format!(
            "there are only {numbers} distinct keys of {} bytes; {} were requested",
            args.key_size, args.count
        );
        return Err(CliError::usage(text).hint("use a larger --key-size or a smaller --count"));
    }
    if args.count.saturating_mul(args.key_size) > MOST_KEY_FILE_BYTES {
        let text =
            format!("{} keys of {} bytes exceed the maximum size of a key file", args.count, args.key_size);
        return Err(
            CliError::usage(text).hint("the maximum is 8 GiB because each trial keeps the keys in memory")
        );
    }
    // The leading bytes are distinct numbers in random order; the other bytes are random.
    let order = Permutation::new(numbers, args.seed);
    let mut random = Random::stream(args.seed, 0);
    write_new(&args.file, |out| {
        let mut key = vec![0; args.key_size as usize];
        for index in 0..args.count {
            for chunk in key.chunks_mut(8) {
                chunk.copy_from_slice(&random.next_u64().to_be_bytes()[..chunk.len()]);
            }
            let number = order.at(index);
            // The 64th bit is random.
            let number = if lead == 8 { number << 1 | u64::from(key[7] & 1) } else { number };
            key[..lead].copy_from_slice(&number.to_be_bytes()[8 - lead..]);
            out.write_all(&key)?;
        }
        Ok(())
    })?;
    let (count, size, seed) = (args.count, args.key_size, args.seed);
    println!("{}: {count} keys of {size} bytes, seed {seed}", args.file.display());
    Ok(0)
}

/// Reads a key file and checks that its first `count` keys (`None`: all keys) are complete and distinct. Returns the bytes
/// and the number of keys.
fn read(path: &Path, key_size: u64, count: Option<u64>) -> Result<(Vec<u8>, u64), CliError> {
    let bytes = Arc::new(read_limited(path, MOST_KEY_FILE_BYTES).map_err(CliError::cannot("read", path))?);
    let count = count.unwrap_or((bytes.len() as u64 / key_size).max(1));
    let wrong = |error: String| CliError::usage(format!("{}: {error}", path.display()));
    let size = SizeSpec::Fixed(u32::try_from(key_size).unwrap_or(u32::MAX));
    let file: KeyFile = bytes.clone();
    let rules = KeyRules { range: count, size, file: Some(file), ..KeyRules::default() };
    let keys = Keys::new(&rules, 0).map_err(|error| wrong(error.to_string()))?;
    if let Some((first, second)) = keys.repeated_in_file() {
        return Err(wrong(format!(
            "the key file contains the same key twice, at positions {first} and {second}"
        ))
        .hint("check that --key-size matches the file; `kvdyno keys make` creates distinct keys"));
    }
    drop((keys, rules));
    let bytes = Arc::try_unwrap(bytes).unwrap_or_else(|shared| shared.to_vec());
    Ok((bytes, count))
}

fn shuffle(args: &ShuffleArgs) -> Result<u8, CliError> {
    let (mut bytes, count) = read(&args.file, args.key_size, args.count)?;
    let size = args.key_size as usize;
    let mut random = Random::stream(args.seed, 1);
    for last in (1..count as usize).rev() {
        let other = random.below(last as u64 + 1) as usize;
        if other != last {
            let (front, back) = bytes.split_at_mut(last * size);
            front[other * size..][..size].swap_with_slice(&mut back[..size]);
        }
    }
    let done = match &args.to {
        Some(out) => {
            write_new(out, |file| file.write_all(&bytes))?;
            format!("written to {}", out.display())
        }
        None => {
            replace(&args.file, &bytes)?;
            "in place".to_string()
        }
    };
    let rest = bytes.len() as u64 / args.key_size - count;
    let rest = if rest > 0 { format!(", the other {rest} unchanged") } else { String::new() };
    println!("{}: {count} keys shuffled{rest}, {done}, seed {}", args.file.display(), args.seed);
    Ok(0)
}

/// Replaces the contents of a file. The new contents are written to a temporary file first, so that a crash leaves either
/// the old or the new contents intact.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    // For a link, the target is replaced, not the link.
    let path = path.canonicalize().map_err(CliError::cannot("find", path))?;
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".shuffled");
    let temporary = path.with_file_name(name);
    write_new(&temporary, |file| file.write_all(bytes))?;
    let replaced = fs::metadata(&path)
        .and_then(|old| fs::set_permissions(&temporary, old.permissions()))
        .and_then(|()| fs::rename(&temporary, &path))
        .and_then(|()| path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all()));
    if replaced.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    replaced.map_err(CliError::cannot("replace", &path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn made(folder: &Path, count: u64, key_size: u64, seed: u64) -> Vec<u8> {
        let file = folder.join(format!("{count}-{key_size}-{seed}"));
        make(&MakeArgs { file: file.clone(), count, key_size, seed }).unwrap();
        fs::read(file).unwrap()
    }

    fn distinct(bytes: &[u8], size: usize) -> usize {
        bytes.chunks(size).collect::<HashSet<_>>().len()
    }

    #[test]
    fn keys_are_distinct_random_and_the_same_for_a_seed() {
        let folder = tempfile::tempdir().unwrap();
        for size in [4, 5, 7, 8, 9, 16, 33] {
            let bytes = made(folder.path(), 20_000, size, 1);
            assert_eq!(bytes.len() as u64, 20_000 * size);
            assert_eq!(distinct(&bytes, size as usize), 20_000, "size {size}");
            // Each bit of a key is set in about half of the keys: 10,000 +- 8 standard deviations of 71.
            for bit in 0..8 * size as usize {
                let keys = bytes.chunks(size as usize);
                let set = keys.filter(|key| key[bit / 8] & 1 << (bit % 8) != 0).count();
                assert!((9430..10_570).contains(&set), "size {size}, bit {bit}: {set}");
            }
        }
        let bytes = made(folder.path(), 1000, 16, 1);
        let again = tempfile::tempdir().unwrap();
        assert_eq!(bytes, made(again.path(), 1000, 16, 1));
        assert_ne!(bytes, made(again.path(), 1000, 16, 2));
        assert_eq!(
            bytes,
            made(folder.path(), 2000, 16, 1)[..16_000],
            "a larger count starts with the same keys"
        );
    }

    #[test]
    fn a_shuffle_is_a_permutation_of_the_first_keys() {
        let folder = tempfile::tempdir().unwrap();
        let before = made(folder.path(), 1000, 12, 1);
        let file = folder.path().join("1000-12-1");
        let run = |count: Option<u64>, seed: u64, to: Option<PathBuf>| {
            shuffle(&ShuffleArgs { file: file.clone(), key_size: 12, count, seed, to }).unwrap();
        };
        let out = folder.path().join("out");
        run(Some(600), 7, Some(out.clone()));
        assert_eq!(fs::read(&file).unwrap(), before, "--to does not change the file");
        let part = fs::read(&out).unwrap();
        assert_eq!(part[7200..], before[7200..]);
        assert_ne!(part[..7200], before[..7200]);
        run(Some(600), 7, None);
        assert_eq!(fs::read(&file).unwrap(), part, "shuffling in place produces the same order");
        run(None, 8, None);
        let after = fs::read(&file).unwrap();
        let sorted = |bytes: &[u8]| {
            let mut keys: Vec<Vec<u8>> = bytes.chunks(12).map(<[u8]>::to_vec).collect();
            keys.sort();
            keys
        };
        assert_eq!(sorted(&after), sorted(&before));
        let stayed = after.chunks(12).zip(part.chunks(12)).filter(|(one, other)| one == other).count();
        assert!(stayed < 10, "{stayed} of 1000 keys stayed in place");
        assert!(!folder.path().join("1000-12-1.shuffled").exists());
    }

    #[test]
    fn short_keys_can_use_all_their_numbers() {
        assert_eq!(lead(4), (1 << 32, 4));
        assert_eq!(lead(7), (1 << 56, 7));
        assert_eq!((lead(8), lead(100)), ((1 << 63, 8), (1 << 63, 8)));
    }
}
