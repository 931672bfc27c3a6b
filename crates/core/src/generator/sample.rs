//! `Sampler`: draws items, for any distribution; one enum, so that the hot loop has no dynamic call.

use super::exponential::Exponential;
use super::hotspot::Hotspot;
use super::latest::Latest;
use super::permutation::Pass;
use super::random::Random;
use super::sequence::Sequence;
use super::spec::{Distribution, SpecError};
use super::uniform::Uniform;
use super::ycsb::Ycsb;
use super::zipf::Zipf;

/// One of `count` threads: it owns the items whose index is `index` modulo `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partition {
    /// From 0 to count - 1.
    pub index: u64,
    /// At least 1.
    pub count: u64,
}

impl Partition {
    /// The only part.
    pub const WHOLE: Partition = Partition { index: 0, count: 1 };

    /// The number of items of [0, n) in this part.
    #[inline]
    pub fn len(&self, n: u64) -> u64 {
        if self.index < n { (n - self.index - 1) / self.count + 1 } else { 0 }
    }

    /// The part's item number `place`.
    #[inline]
    pub fn item(&self, place: u64) -> u64 {
        self.index + place * self.count
    }
}

/// Draws items of a range. Everything except the draws themselves (such as which items are hot) depends on the seed
/// passed to `new`, which must be the same for all threads; the draws use the `Random` passed to `next`.
#[derive(Clone, Debug)]
pub struct Sampler {
    n: u64,
    part: Option<Partition>,
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Sequence(Sequence),
    Uniform(Uniform),
    Pass(Pass),
    Zipf(Zipf),
    GrownZipf(Zipf),
    Ycsb(Ycsb),
    Latest(Latest),
    Hotspot(Hotspot),
    Exponential(Exponential),
}

impl Sampler {
    /// A sampler of the items [0, n).
    ///
    /// `sequential` and `permutation` return the items of `part` only, each once per pass; the others draw from all.
    /// `clustered` places the hot items of `zipf` and `hotspot` next to each other at the start instead of scattering
    /// them. Returns an error for parameters out of range, an n of 0 or over 2^63, and a part without items.
    pub fn new(
        distribution: &Distribution,
        n: u64,
        seed: u64,
        part: Partition,
        clustered: bool,
    ) -> Result<Sampler, SpecError> {
        if n == 0 || n > 1 << 63 {
            return Err(SpecError(format!("`{distribution}` needs 1 to 2^63 items, got {n}")));
        }
        let own = |form| {
            if part.index >= part.count || part.len(n) == 0 {
                let Partition { count, .. } = part;
                let text =
                    format!("{n} items cannot be split among {count} threads; use at most {n} threads");
                return Err(SpecError(text));
            }
            Ok(Sampler { n, part: Some(part), form })
        };
        let any = |form| Ok(Sampler { n, part: None, form });
        match distribution.clone().checked()? {
            Distribution::Sequential => own(Form::Sequence(Sequence::new(n, part))),
            Distribution::Permutation if part.len(n) == 0 => own(Form::Sequence(Sequence::new(n, part))),
            Distribution::Permutation => own(Form::Pass(Pass::new(n, seed, part))),
            Distribution::Uniform => any(Form::Uniform(Uniform::new(n))),
            Distribution::Zipf(theta) => any(Form::Zipf(Zipf::new(n, theta, seed, clustered))),
            Distribution::YcsbZipfian => any(Form::Ycsb(Ycsb::new(n))),
            Distribution::Latest => any(Form::Latest(Latest::new(n))),
            Distribution::Hotspot(fraction, share) => {
                any(Form::Hotspot(Hotspot::new(n, fraction, share, seed, clustered)))
            }
            Distribution::Exponential(percentile, fraction) => {
                any(Form::Exponential(Exponential::new(n, percentile, fraction)))
            }
        }
    }

    /// The next item, in [0, n).
    #[inline]
    pub fn next(&mut self, random: &mut Random) -> u64 {
        match &mut self.form {
            Form::Uniform(uniform) => uniform.next(random),
            Form::Sequence(sequence) => sequence.next(),
            Form::Pass(pass) => pass.next(),
            Form::Zipf(zipf) => zipf.next(random),
            Form::GrownZipf(zipf) => zipf.next_grown(random),
            Form::Ycsb(ycsb) => ycsb.next(random),
            Form::Latest(latest) => latest.next(random),
            Form::Hotspot(hotspot) => hotspot.next(random),
            Form::Exponential(exponential) => exponential.next(random),
        }
    }

    /// Draws as many items as `out` has space for: the same as by [`Sampler::next`], in less time.
    #[inline]
    pub fn fill(&mut self, random: &mut Random, out: &mut [u64]) {
        match &mut self.form {
            Form::Uniform(uniform) => out.iter_mut().for_each(|item| *item = uniform.next(random)),
            Form::Pass(pass) => out.iter_mut().for_each(|item| *item = pass.next()),
            Form::Zipf(zipf) => zipf.fill(random, out),
            Form::Ycsb(ycsb) => ycsb.fill(random, out),
            _ => out.iter_mut().for_each(|item| *item = self.next(random)),
        }
    }

    /// Sets the range to [0, n); an n below the current one changes nothing, and neither does any n for
    /// `ycsb-zipfian`. `permutation` uses it from its next pass on. Costs some ns; for `zipf` some microseconds about
    /// every 6 % of growth.
    #[inline]
    pub(super) fn grow(&mut self, n: u64) {
        if n > self.n && !matches!(self.form, Form::Ycsb(_)) {
            self.grow_to(n);
        }
    }

    fn grow_to(&mut self, n: u64) {
        self.n = n;
        match &mut self.form {
            Form::Uniform(uniform) => uniform.grow(n),
            Form::Sequence(sequence) => sequence.grow(n),
            Form::Pass(pass) => pass.grow(n),
            Form::Zipf(zipf) | Form::GrownZipf(zipf) => zipf.grow(n),
            Form::Ycsb(_) => {}
            Form::Latest(latest) => latest.grow(n),
            Form::Hotspot(hotspot) => hotspot.grow(n),
            Form::Exponential(exponential) => exponential.grow(n),
        }
        if let Form::Zipf(zipf) = &self.form {
            self.form = Form::GrownZipf(zipf.clone());
        }
    }

    /// The number of items in the range.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The number of items that can be drawn: those of the part for `sequential` and `permutation`, otherwise all.
    pub fn part_len(&self) -> u64 {
        self.part.map_or(self.n, |part| part.len(self.n))
    }
}
