//! What was found on the way through what an agent says.

use super::refusal::Refusal;
use super::vendor_tools::Offer;

/// What was found in a part of a request. Of what must be refused, the first counts.
#[derive(Debug, Default)]
pub(crate) struct Found {
    refused: Option<(u64, Box<Refusal>)>,
    /// Images that are in the request, and the bytes of those that the model surely sees as such.
    pub(crate) images: u64,
    pub(crate) image_bytes: usize,
    /// Other files that are in the request.
    pub(crate) documents: u64,
    /// Tools that the vendor describes to the model by itself.
    pub(crate) described_tools: u64,
    /// Tools that the vendor runs.
    pub(crate) offer: Offer,
}

impl Found {
    /// Something at this byte must be refused.
    pub(crate) fn refuse(&mut self, at: u64, refusal: impl FnOnce() -> Refusal) {
        if self.refused.as_ref().is_none_or(|(first, _)| at < *first) {
            self.refused = Some((at, Box::new(refusal())));
        }
    }

    /// Counts an image that is in the request. Its bytes count as those of text, unless they are left out.
    pub(crate) fn count_image(&mut self) {
        self.images += 1;
    }

    /// Leaves out the bytes of an image that was counted.
    pub(crate) fn leave_out_image(&mut self, bytes: usize) {
        self.image_bytes += bytes;
    }

    /// The same where the model may read all of it as text, whatever it looks like. The attack: a book where nobody looks for an
    /// image, dressed as one, which costs what a book does.
    pub(crate) fn or_text(self) -> Self {
        Self { image_bytes: 0, ..self }
    }

    /// Counts a document that is in the request.
    pub(crate) fn count_document(&mut self) {
        self.documents += 1;
    }

    /// Counts a tool that the vendor describes to the model by itself.
    pub(crate) fn count_described_tool(&mut self) {
        self.described_tools += 1;
    }

    /// Adds what was found in a part of this one.
    pub(crate) fn add(&mut self, part: Self) {
        self.images += part.images;
        self.image_bytes += part.image_bytes;
        self.documents += part.documents;
        self.described_tools += part.described_tools;
        self.offer.add(part.offer);
        if let Some((at, refusal)) = part.refused {
            self.refuse(at, || *refusal);
        }
    }

    /// Whether something must be refused.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    /// What must be refused, if anything.
    pub(crate) fn verdict(&mut self) -> Result<(), Refusal> {
        self.refused.take().map_or(Ok(()), |(_, refusal)| Err(*refusal))
    }
}

/// What was taken out, for people.
#[derive(Debug, Default)]
pub(crate) struct Stripped(Vec<String>);

impl Stripped {
    /// Remembers what was taken out. The attack: a name for each of some thousand fields.
    pub(crate) fn add(&mut self, what: impl FnOnce() -> String) {
        if self.0.len() < 32 {
            let what = what();
            if !self.0.contains(&what) {
                self.0.push(what);
            }
        }
    }

    /// Adds what was taken out elsewhere.
    pub(crate) fn append(&mut self, other: Self) {
        other.0.into_iter().for_each(|what| self.add(|| what));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_list(self) -> Vec<String> {
        self.0
    }
}
