//! The most input that a vendor can charge a request for. A budget holds only as far as what is reserved is no less than what
//! is charged, so every number here errs to one side: what was not needed is given back when the vendor has told.

use cofferdam_core::Vendor;

/// What was found in a request, as far as it is charged.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    /// All of it as it is forwarded, without the data of its images.
    pub(super) bytes: u64,
    /// Images whose data is in the request.
    pub(super) images: u64,
    /// PDFs and other files whose data is in the request.
    pub(super) documents: u64,
    /// Tools that the vendor describes to the model by itself.
    pub(super) described_tools: u64,
}

/// What Anthropic charges an image at most: it is scaled down to 2576 pixels and 4784 tokens, on older models to 1568 pixels.
const ANTHROPIC_IMAGE: u64 = 5_000;
/// What OpenAI charges one at most. By tiles it is 2833 and 8 times 5667 tokens (`gpt-4o-mini`), by patches of 32 pixels that
/// of an image of 6000 by 6000 pixels, times 1.2. How large an image is in bytes says nothing: one colour takes hardly any.
const OPENAI_IMAGE: u64 = 50_000;

/// The largest context that a vendor offers. What a document is charged as depends on what is packed in it: of Anthropic's 600
/// pages each is its text, of up to 3000 tokens and more, and an image. So it is as much as a model takes; a request with
/// more is refused by the vendor, and costs nothing.
pub(super) const LARGEST_CONTEXT: u64 = 1_050_000;

/// What is not in the request: how a message and an answer begin, how tools are to be called (up to 530 tokens), in which form
/// to answer.
const AROUND: u64 = 1_000;
/// What a tool is described with that is only named in the request: up to 735 tokens and 499 of how to use it.
const DESCRIBED_TOOL: u64 = 2_000;

impl Sent {
    /// The most tokens.
    ///
    /// The tokenizers of both vendors take text as bytes, so that no token is less than one. In ordinary text it is three or
    /// four; in rare scripts, in noise, and in emoji it is one. What is written as JSON is never shorter than what it says.
    pub(super) fn most_tokens(self, vendor: Vendor) -> u64 {
        let image = match vendor {
            Vendor::Anthropic => ANTHROPIC_IMAGE,
            Vendor::Openai => OPENAI_IMAGE,
        };
        let parts = [
            self.bytes,
            AROUND,
            self.images.saturating_mul(image),
            self.described_tools.saturating_mul(DESCRIBED_TOOL),
        ];
        let tokens = parts.into_iter().fold(0, u64::saturating_add);
        if self.documents > 0 { tokens.max(LARGEST_CONTEXT) } else { tokens }
    }
}
