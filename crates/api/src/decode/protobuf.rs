//! Reads a protobuf message into the tree that JSON and YAML are read into.
//!
//! Which numbers there are and what they stand for comes from the schema table. The depth of the tree is bounded by the
//! table, whose types are not recursive; the number of values is bounded as for JSON.

use std::fmt;

use super::tree::Budget;
use super::{Document, Format, Member, Node, Position, Value, parse_json};
use crate::meta::Time;
use crate::protobuf::{Envelope, Malformed, MessageReader, WireValue};
use crate::protobuf::{KEY, RAW, SECONDS, VALUE, ZERO_TIME};
use crate::schema::{Field, Presence, Shape, TypeName, TypeSchema};

/// Reads the message in an envelope as one of that type. What the envelope says about the type becomes the members
/// `apiVersion` and `kind`.
///
/// Fields that the type does not have are skipped. What is empty and would be left out of JSON is left out of the tree.
pub fn parse_protobuf(envelope: &Envelope<'_>, schema: &'static TypeSchema) -> Result<Document, Malformed> {
    let mut parser = ProtobufParser { budget: Budget::default(), kind: &envelope.kind };
    let mut members = Vec::new();
    for (name, text) in [("apiVersion", &envelope.api_version), ("kind", &envelope.kind)] {
        if !text.is_empty() {
            members.push(member(name, Value::String(text.clone())));
        }
    }
    parser.message(schema, envelope.message, &mut members)?;
    make_keys_unique(schema, &mut members);
    Ok(Document { root: node(Value::Map(members)), duplicates: Vec::new(), format: Format::Protobuf })
}

struct ProtobufParser<'a> {
    budget: Budget,
    /// The kind of the whole object, for errors.
    kind: &'a str,
}

/// The name by which the reference calls a field, in its errors.
struct GoName<'a>(&'a Field);

// === impl ProtobufParser ===

impl ProtobufParser<'_> {
    /// Reads the fields of a message. A field that comes again adds to a list or a message, and replaces anything else.
    fn message(
        &mut self,
        schema: &'static TypeSchema,
        bytes: &[u8],
        members: &mut Vec<Member>,
    ) -> Result<(), Malformed> {
        let mut reader = MessageReader::new(bytes);
        let named = |error: Malformed| error.in_message(self.kind, schema.name);
        while let Some((number, value)) = reader.next().map_err(named)? {
            if let Some(field) = schema.numbered(number) {
                self.field(field, value, members)?;
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        value: WireValue<'_>,
        members: &mut Vec<Member>,
    ) -> Result<(), Malformed> {
        self.spend()?;
        match field.shape {
            Shape::List(element) => {
                let item = self.element(*element, field, value)?;
                let list = slot(members, field, || Value::List(Vec::new()));
                if let Value::List(items) = list {
                    items.push(item);
                }
            }
            Shape::Object(schema) => {
                let bytes = value.bytes(GoName(field))?;
                if let Value::Map(inner) = slot(members, field, || Value::Map(Vec::new())) {
                    self.message(schema, bytes, inner)?;
                }
            }
            Shape::StringMap => {
                let (key, value) = entry(value.bytes(GoName(field))?)?;
                if let Value::Map(entries) = slot(members, field, || Value::Map(Vec::new())) {
                    entries.push(member(&key, Value::String(value)));
                }
            }
            shape => match self.plain(shape, field, value)? {
                Some(value) => *slot(members, field, || Value::Null) = value,
                None => members.retain(|member| member.key != field.name),
            },
        }
        Ok(())
    }

    fn element(&mut self, shape: Shape, field: &'static Field, value: WireValue<'_>) -> Result<Node, Malformed> {
        Ok(node(match shape {
            Shape::Object(schema) => {
                let bytes = value.bytes(GoName(field))?;
                // A field takes two bytes at least. There may be half a million messages that are as short as that.
                let mut members = Vec::with_capacity((bytes.len() / 2).min(4));
                self.message(schema, bytes, &mut members)?;
                Value::Map(members)
            }
            _ => Value::String(text(value.bytes(GoName(field))?)),
        }))
    }

    /// A value that is no message, or nothing if JSON leaves it out.
    fn plain(&mut self, shape: Shape, field: &Field, value: WireValue<'_>) -> Result<Option<Value>, Malformed> {
        let is_shown = |is_zero: bool| field.presence == Presence::Optional || field.always_written || !is_zero;
        let name = GoName(field);
        Ok(match shape {
            Shape::Boolean => {
                let value = value.number(name)? != 0;
                is_shown(!value).then_some(Value::Bool(value))
            }
            Shape::Int32 => {
                // As in the reference, only the low 32 bits count.
                let low = value.number(name)? & u64::from(u32::MAX);
                let value = u32::try_from(low).unwrap_or_default().cast_signed();
                is_shown(value == 0).then(|| Value::Number(value.to_string().into()))
            }
            Shape::Int64 => {
                let value = value.number(name)?.cast_signed();
                is_shown(value == 0).then(|| Value::Number(value.to_string().into()))
            }
            Shape::Time => time(value.bytes(name)?)?.map(|time| Value::String(time.to_string())),
            Shape::FieldSet => self.field_set(value.bytes(name)?)?,
            _ => {
                let text = text(value.bytes(name)?);
                is_shown(text.is_empty()).then_some(Value::String(text))
            }
        })
    }

    /// A field set is JSON inside of a message.
    fn field_set(&mut self, bytes: &[u8]) -> Result<Option<Value>, Malformed> {
        let mut reader = MessageReader::new(bytes);
        let mut json: &[u8] = &[];
        while let Some((number, value)) = reader.next().map_err(|error| error.in_message("", FIELDS_V1))? {
            if number == RAW {
                json = value.bytes("Raw")?;
            }
        }
        if json.is_empty() {
            return Ok(None);
        }
        let document = parse_json(json).map_err(|error| Malformed::FieldSet(error.to_string()))?;
        let (values, _) = document.root.size();
        self.spend_values(values)?;
        Ok(Some(document.root.value))
    }

    fn spend(&mut self) -> Result<(), Malformed> {
        self.spend_values(1)
    }

    fn spend_values(&mut self, values: usize) -> Result<(), Malformed> {
        let spent = self.budget.spend(values, 0, Position::default());
        spent.map_err(|error| Malformed::TooLarge(format!("the message {}", error.message)))
    }
}

const FIELDS_V1: TypeName = TypeName::Fixed("FieldsV1");
const TIMESTAMP: TypeName = TypeName::Fixed("Timestamp");

/// The value of a field of a message, made if it is not there yet.
fn slot<'a>(members: &'a mut Vec<Member>, field: &Field, new: impl FnOnce() -> Value) -> &'a mut Value {
    let index = members.iter().position(|member| member.key == field.name).unwrap_or_else(|| {
        members.push(member(field.name, new()));
        members.len() - 1
    });
    &mut members[index].value.value
}

/// The key and the value in an entry of a map.
fn entry(bytes: &[u8]) -> Result<(String, String), Malformed> {
    let (mut key, mut value) = (String::new(), String::new());
    let mut reader = MessageReader::new(bytes);
    while let Some((number, found)) = reader.next()? {
        match (number, found) {
            (KEY, WireValue::Bytes(bytes)) => key = text(bytes),
            (VALUE, WireValue::Bytes(bytes)) => value = text(bytes),
            _ => {}
        }
    }
    Ok((key, value))
}

/// A time, or nothing for one that is not set.
fn time(bytes: &[u8]) -> Result<Option<Time>, Malformed> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut seconds = 0;
    let mut reader = MessageReader::new(bytes);
    while let Some((number, value)) = reader.next().map_err(|error| error.in_message("", TIMESTAMP))? {
        if number == SECONDS {
            seconds = value.number("Seconds")?.cast_signed();
        }
    }
    Ok((seconds != ZERO_TIME).then(|| Time::from_unix_seconds(seconds)))
}

/// A text. What is not UTF-8 in it is replaced, as the reference does when it writes such a text in JSON.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Leaves the last value of each key in every map of texts. This is done once for a whole message: a map may come in
/// many pieces, and looking for each key as it comes could take time out of proportion.
fn make_keys_unique(schema: &TypeSchema, members: &mut [Member]) {
    for member in members {
        let Some(field) = schema.field(&member.key) else { continue };
        match (field.shape, &mut member.value.value) {
            (Shape::StringMap, Value::Map(entries)) => {
                entries.reverse();
                entries.sort_by(|one, other| one.key.cmp(&other.key));
                entries.dedup_by(|one, other| one.key == other.key);
            }
            (Shape::Object(schema), Value::Map(members)) => make_keys_unique(schema, members),
            (Shape::List(Shape::Object(schema)), Value::List(items)) => {
                for item in items {
                    if let Value::Map(members) = &mut item.value {
                        make_keys_unique(schema, members);
                    }
                }
            }
            _ => {}
        }
    }
}

fn member(name: &str, value: Value) -> Member {
    Member { key: name.to_owned(), key_at: Position::default(), value: node(value) }
}

fn node(value: Value) -> Node {
    Node { value, at: Position::default() }
}

// === impl GoName ===

impl fmt::Display for GoName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Field { name, shape, .. } = self.0;
        match (*name, shape) {
            // Embedded in the struct, these are called as their type.
            ("metadata", Shape::Object(TypeSchema { name: TypeName::Fixed(embedded), .. })) => f.write_str(embedded),
            ("uid", _) => f.write_str("UID"),
            (name, _) => match name.strip_prefix("api") {
                Some(rest) => write!(f, "API{rest}"),
                None => write!(f, "{}{}", name[..1].to_ascii_uppercase(), &name[1..]),
            },
        }
    }
}
