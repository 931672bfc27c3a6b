//! The versions that were built and loaded so far: each when a step first needs it.

use super::versions::Version;
use crate::cli::error::CliError;
use crate::cli::trials::interrupted;
use crate::cli::turns::{Arm, Engines, Figure, Given, Loaded, Metric, Setup, different_levels, equal, load};
use kvdyno_measure::text::plain_text;
use kvdyno_measure::{signals, start};
use std::cell::OnceCell;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Why a version cannot be compared.
pub(super) enum Unfit {
    /// It is skipped, for this reason.
    Skipped(String),
    /// The command ends.
    Ends(CliError),
}

impl From<CliError> for Unfit {
    fn from(error: CliError) -> Unfit {
        Unfit::Ends(error)
    }
}

/// The versions.
pub(super) struct Stage<'a> {
    setup: Setup<'a>,
    versions: &'a [Version],
    engines: &'a [OnceCell<Engines>],
    /// The command that builds a version.
    build: Option<&'a str>,
    metric: Metric,
    /// What each version is, if it was given or built.
    given: Vec<Option<Given>>,
    arms: Vec<Option<Arm<'a>>>,
    loaded: Vec<Option<Loaded>>,
}

impl<'a> Stage<'a> {
    /// The versions before the first step. Those that were given are checked, those that are built are not.
    pub(super) fn new(
        setup: Setup<'a>,
        versions: &'a [Version],
        engines: &'a [OnceCell<Engines>],
        metric: Metric,
        build: Option<&'a str>,
    ) -> Result<Stage<'a>, CliError> {
        let given: Vec<Option<Given>> = versions.iter().map(|version| version.given.clone()).collect();
        let none = || versions.iter().map(|_| None);
        let (arms, loaded) = (none().collect(), versions.iter().map(|_| None).collect());
        let mut stage = Stage { setup, versions, engines, build, metric, given, arms, loaded };
        stage.check_different()?;
        for place in 0..versions.len() {
            if stage.given[place].is_some() {
                stage.open(place)?;
            }
        }
        Ok(stage)
    }

    pub(super) fn metric(&self) -> &Metric {
        &self.metric
    }

    /// Two versions that are ready.
    pub(super) fn arms(&self, places: [usize; 2]) -> [&Arm<'a>; 2] {
        places.map(|place| self.arms[place].as_ref().expect("it is ready"))
    }

    /// Builds and loads a version, unless it was done before.
    pub(super) fn ready(&mut self, place: usize) -> Result<(), Unfit> {
        if self.loaded[place].is_some() {
            return Ok(());
        }
        if let (None, Some(command)) = (&self.given[place], self.build) {
            self.given[place] = Some(self.built(place, command)?);
            self.check_different()?;
            self.open(place).map_err(|error| Unfit::Skipped(error.message().to_string()))?;
        }
        let arm = self.arms[place].as_ref().expect("it was opened");
        if self.metric.figure == Figure::Size && !arm.has_files() {
            return Err(Unfit::Skipped("it keeps no files, so it has no size".to_string()));
        }
        let loaded = load(arm, std::slice::from_ref(&self.metric))?;
        let loaded = loaded.map_err(|failure| Unfit::Skipped(failure.text))?;
        if loaded.values.contains(&None) {
            let Metric { phase, figure } = &self.metric;
            return Err(Unfit::Skipped(format!(
                "its {} in phase {phase} is not known; a longer --trial may show it",
                figure.name()
            )));
        }
        let others = self.arms.iter().zip(&self.loaded);
        let mut others = others.filter_map(|(arm, loaded)| arm.as_ref().zip(loaded.as_ref()));
        if let Some((other, others)) = others.next() {
            let different = different_levels((other, &others.levels), (arm, &loaded.levels));
            if let Some(text) = different {
                return Err(Unfit::Skipped(text));
            }
        }
        self.loaded[place] = Some(loaded);
        Ok(())
    }

    /// Finds the engine of a version that was given or built.
    fn open(&mut self, place: usize) -> Result<(), CliError> {
        let given = self.given[place].as_ref().expect("it was given or built");
        let engines = Engines::of(given, self.setup.plugins)?;
        let mut arm = Arm::new(&self.setup, given, self.engines[place].get_or_init(|| engines), place)?;
        arm.name = format!("{} ({})", self.versions[place].name, arm.name);
        self.arms[place] = Some(arm);
        Ok(())
    }

    /// Refuses two versions that are the same file, or the same engine with the same options.
    fn check_different(&self) -> Result<(), CliError> {
        let known = self.given.iter().enumerate();
        let known: Vec<(usize, &Given)> =
            known.filter_map(|(place, given)| Some((place, given.as_ref()?))).collect();
        let Some((one, other)) = equal(&known.iter().map(|(_, given)| *given).collect::<Vec<_>>()) else {
            return Ok(());
        };
        let name = |place: usize| &self.versions[known[place].0].name;
        let hint = match self.build {
            Some(_) => {
                "does the command of --build build the version in KVDYNO_VERSION? If they are equal, omit one"
            }
            None => "omit one of them, or name another file",
        };
        Err(CliError::usage(format!("versions {} and {} are equal", name(one), name(other))).hint(hint))
    }

    /// Builds a version, and copies its plug-in, because the next build may overwrite it.
    fn built(&self, place: usize, command: &str) -> Result<Given, Unfit> {
        let name = &self.versions[place].name;
        let folder = self.setup.folder.join("builds").join((place + 1).to_string());
        fs::create_dir_all(&folder).map_err(CliError::cannot("create", &folder))?;
        let log = folder.join("log");
        let stderr = fs::File::create(&log).map_err(CliError::cannot("create", &log))?;
        eprintln!("{name}: building");
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("KVDYNO_VERSION", name).stdin(Stdio::null()).stderr(stderr);
        let output = start::output(&mut shell)
            .map_err(|error| CliError::failed(format!("cannot start `sh` for --build: {error}")))?;
        if signals::interrupts() > 0 {
            return Err(Unfit::Ends(interrupted()));
        }
        if !output.status.success() {
            let said = fs::read(&log).unwrap_or_default();
            let last = last_line(&said).map(|line| format!(": {line}")).unwrap_or_default();
            let text = format!("its build fails ({}){last} ({})", output.status, log.display());
            return Err(Unfit::Skipped(text));
        }
        let path = last_line(&output.stdout)
            .ok_or_else(|| Unfit::Skipped("its build prints no path of a plug-in".to_string()))?;
        let unfit = |error: std::io::Error| Unfit::Skipped(format!("its build prints `{path}`: {error}"));
        let file = Path::new(&path);
        let file_name = file.file_name().ok_or_else(|| unfit(std::io::ErrorKind::NotFound.into()))?;
        let copy = folder.join(file_name);
        fs::copy(file, &copy).map_err(unfit)?;
        Ok(Given::of_file(&copy))
    }
}

/// The last line that is not empty.
fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().rev().map(|line| plain_text(line.trim())).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_plug_in_is_the_last_line_that_is_not_empty() {
        assert_eq!(last_line(b"compiling\n a/libkvdyno_x.so \n\n").as_deref(), Some("a/libkvdyno_x.so"));
        assert_eq!(last_line(b"\n \n"), None);
    }
}
