//! Tool calls of Chat Completions, put together from their pieces. A pure machine: servers leave out the index, the id or the name,
//! bring them late, repeat them, or number every call 0, and each of that is read as it is meant.

use openclaw_protocol::message::ToolCall;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::arguments::is_filled_object;
use crate::assembly::Assembly;
use crate::lenient;

/// A piece of a call.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct CallDelta {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Fields beside those, such as the signature of a thought: the server wants them back with the call.
    others: Map<String, Value>,
}

/// `function` of a piece, and the `function_call` of old servers.
#[derive(Deserialize, Default)]
pub(super) struct FunctionDelta {
    #[serde(default, deserialize_with = "lenient::text")]
    name: Option<String>,
    #[serde(default, deserialize_with = "lenient::json_text")]
    arguments: Option<String>,
}

impl From<FunctionDelta> for CallDelta {
    fn from(function: FunctionDelta) -> Self {
        let FunctionDelta { name, arguments } = function;
        Self { name: name.unwrap_or_default(), arguments: arguments.unwrap_or_default(), ..Self::default() }
    }
}

impl<'de> Deserialize<'de> for CallDelta {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut delta = Self::default();
        lenient::each_field(lenient::raw(from)?, |name, value| match name {
            "index" => delta.index = lenient::count(value).ok().flatten(),
            "id" => delta.id = lenient::id(value).ok().flatten().unwrap_or_default(),
            "function" => {
                let function = Self::from(lenient::object_in::<FunctionDelta>(value).unwrap_or_default());
                (delta.name, delta.arguments) = (function.name, function.arguments);
            }
            "type" => {}
            other => {
                if let Some(value) = lenient::read(value).filter(|value: &Value| !value.is_null()) {
                    delta.others.insert(other.to_owned(), value);
                }
            }
        });
        Ok(delta)
    }
}

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<OpenCall>,
}

/// A call of the answer under the server's index.
#[derive(Debug)]
struct OpenCall {
    index: Option<u64>,
    /// The server has given it an id.
    has_id: bool,
    block: usize,
}

impl Calls {
    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes the next piece.
    pub(super) fn take(&mut self, delta: CallDelta, out: &mut Assembly) {
        let at = self.continued(&delta, out).unwrap_or_else(|| {
            let block = out.tool_call(&delta.id, "");
            self.open.push(OpenCall { index: delta.index, has_id: !delta.id.is_empty(), block });
            self.open.len() - 1
        });
        let Some(call) = self.open.get_mut(at) else { return };
        if !call.has_id && !delta.id.is_empty() {
            call.has_id = true;
            out.call_id(call.block, &delta.id);
        }
        if let Some((known, written)) = out.call(call.block)
            && let Some(name) = grown(&known.name, &delta.name, written.is_empty())
        {
            out.call_name(call.block, &name);
        }
        out.tool_arguments(call.block, &delta.arguments);
        out.call_fields(call.block, delta.others);
    }

    /// The number of the call that a piece continues: that of its index or its id, else the last one.
    fn continued(&self, delta: &CallDelta, out: &Assembly) -> Option<usize> {
        let with_id = |call: &OpenCall| {
            call.has_id && out.call(call.block).is_some_and(|(known, _)| known.id == delta.id)
        };
        let by_id = || self.open.iter().rposition(with_id);
        let at =
            match delta.index {
                // The index may come late too.
                Some(_) => self.open.iter().rposition(|call| call.index == delta.index).or_else(|| {
                    by_id().filter(|at| self.open.get(*at).is_some_and(|call| call.index.is_none()))
                }),
                None => by_id().or_else(|| self.open.len().checked_sub(1)),
            }?;
        let call = self.open.get(at)?;
        let (known, written) = out.call(call.block)?;
        let both_have_ids = call.has_id && !delta.id.is_empty();
        let begins = match both_have_ids {
            true if known.id == delta.id => false,
            // Every call may be numbered 0.
            true => begins_by_name(delta, known) || is_filled_object(written),
            false => begins_by_name(delta, known) && begins_anew(delta, &known.name, written),
        };
        (!begins).then_some(at)
    }
}

/// True where a piece has a name although its call has one. Some servers say the name with each piece.
fn begins_by_name(delta: &CallDelta, known: &ToolCall) -> bool {
    !delta.name.is_empty() && !known.name.is_empty()
}

/// True if a piece with a name but without an id begins another call.
fn begins_anew(delta: &CallDelta, name: &str, written: &str) -> bool {
    let is_other = !delta.name.starts_with(name);
    let goes_on = delta.name == name && (delta.arguments.is_empty() || delta.arguments.starts_with(written));
    // Parts of a name are only known by their index.
    is_other && (delta.index.is_none() || !written.is_empty()) || !goes_on && is_filled_object(written)
}

/// The name with what a piece says of it, if that changes it: it may come late, in parts or again and again.
fn grown(known: &str, said: &str, may_go_on: bool) -> Option<String> {
    if said.is_empty() || said == known {
        return None;
    }
    if said.starts_with(known) {
        return Some(said.to_owned());
    }
    may_go_on.then(|| format!("{known}{said}"))
}
