//! Shaping of answers for chat platforms: they are cut into blocks while they are written, and
//! paced (spec `streaming.md`).
//!
//! This module decides and does nothing: values and times in, values out. In the order in which an
//! answer passes:
//!
//! | part | module |
//! |---|---|
//! | switches of the parts, and size of blocks | [`settings`] |
//! | text becomes blocks | [`chunker`] |
//! | small blocks become one | [`coalescer`] |
//! | choice of the blocks that are sent, and the rest for the end | [`pipeline`] |
//! | pauses as people make them | [`human_delay`] |
//! | clean-up of a payload, and its prefix | [`normalise`], [`prefix`] |
//! | messages that a tool has already sent | [`sent_by_tool`] |
//! | quotations | [`threading`] |
//! | notes on tools, with `/verbose` | [`tool_notes`] |
//! | drafts on platforms that show them; typing indicator | [`draft`], [`typing`] |

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
pub use pipeline::{BlockEffect, BlockPipeline, SendEnd};
pub use settings::{ReplySettings, Surface};
pub use typing::{Typing, TypingEffect, TypingSignal};
