//! From an answer to what a chat platform is given: shaped, cut into blocks while it is written, paced (spec `streaming.md`).
//!
//! Everything here decides and does nothing: values and times in, values out. In the order in which an answer passes:
//!
//! | what | where |
//! |---|---|
//! | which of it is switched on, and how large blocks are | [`settings`] |
//! | text becomes blocks | [`chunker`] |
//! | small blocks become one | [`coalescer`] |
//! | which blocks are sent, and what is left for the end | [`pipeline`] |
//! | a pause as people make it | [`human_delay`] |
//! | what a payload may say, and its prefix | [`normalise`], [`prefix`] |
//! | what was sent by a tool already | [`sent_by_tool`] |
//! | what is quoted | [`threading`] |
//! | what tools do, with `/verbose` | [`tool_notes`] |
//! | the text so far, where a platform shows it; that somebody is writing | [`draft`], [`typing`] |

pub mod chunker;
pub mod coalescer;
pub mod draft;
pub mod human_delay;
pub mod normalise;
pub mod pipeline;
pub mod prefix;
pub mod sent_blocks;
pub mod sent_by_tool;
pub mod settings;
pub mod threading;
pub mod tool_notes;
pub mod typing;

pub use chunker::{Block, BlockChunker, ChunkSettings, Continues, Drain};
pub use coalescer::{BlockReply, CoalesceSettings, Coalescer};
pub use draft::{DraftEffect, DraftSettings, DraftStream};
pub use human_delay::Pause;
pub use pipeline::{BlockPipeline, Effect, SendEnd};
pub use settings::{ReplySettings, Surface};
pub use typing::{Typing, TypingEffect, TypingSignal};
