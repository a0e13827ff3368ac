//! Server-sent events: how a frame is written, and how a stream of them is read.

/// The media type of a stream.
pub const MEDIA_TYPE: &str = "text/event-stream";
/// The kind of a stream's last frame. A stream that ends without it was cut.
pub const END: &str = "end";
/// The longest frame that a reader takes. An event is cut at 1 MiB before it is stored, and JSON can write one byte as
/// six.
const LONGEST: usize = 8 << 20;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// Its number, if it has one.
    pub id: Option<u64>,
    /// Its kind, if it has one.
    pub event: Option<String>,
    /// What it says.
    pub data: String,
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// It is not text.
    #[error("the stream is not valid UTF-8")]
    NotText,
    /// A frame has no end.
    #[error("a frame of the stream is longer than {LONGEST} bytes")]
    TooLong,
}

/// Writes a frame.
#[must_use]
pub fn frame(id: Option<u64>, event: &str, data: &str) -> String {
    write(id.map(|id| id.to_string()).as_deref(), event, data)
}

/// Writes a frame at a place that is no number. Nothing but letters, digits, `_` and `.` may be in it.
#[must_use]
pub fn frame_at(place: &str, event: &str, data: &str) -> String {
    write(Some(place), event, data)
}

fn write(id: Option<&str>, event: &str, data: &str) -> String {
    let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
    let mut text = format!("{id}event: {event}\n");
    for line in data.split('\n') {
        text.push_str("data: ");
        text.push_str(line);
        text.push('\n');
    }
    text.push('\n');
    text
}

/// Keeps a connection from looking dead. It is no event.
pub const HEARTBEAT: &str = ": heartbeat\n\n";

/// The last words of a stream whose reader's key was revoked. They are no event.
pub const REVOKED: &str = ": the API key was revoked\n\n";

/// Takes a stream apart, however its bytes come.
#[derive(Debug, Default)]
pub struct Reader {
    bytes: Vec<u8>,
    current: Frame,
    has_data: bool,
}

impl Reader {
    /// Takes more bytes, and returns the frames that they complete.
    ///
    /// # Errors
    /// [`StreamError`]; the stream cannot be read any further.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, StreamError> {
        self.bytes.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(end) = self.bytes.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = std::str::from_utf8(&line).map_err(|_| StreamError::NotText)?;
            frames.extend(self.line(line.trim_end_matches(['\n', '\r'])));
        }
        match self.bytes.len() + self.current.data.len() > LONGEST {
            true => Err(StreamError::TooLong),
            false => Ok(frames),
        }
    }

    fn line(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            let frame = std::mem::take(&mut self.current);
            return std::mem::take(&mut self.has_data).then_some(frame);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.current.id = value.parse().ok(),
            "event" => self.current.event = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.current.data.push('\n');
                }
                self.has_data = true;
                self.current.data.push_str(value);
            }
            // A comment has an empty field; others are not ours.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_however_it_is_cut() {
        let text = frame(Some(7), "run.queued", r#"{"a":"ü"}"#) + HEARTBEAT + &frame(None, END, "a\nb");
        let whole = Reader::default().take(text.as_bytes()).unwrap();
        assert_eq!(whole.len(), 2);
        assert_eq!(
            whole[0],
            Frame { id: Some(7), event: Some("run.queued".to_owned()), data: r#"{"a":"ü"}"#.to_owned() }
        );
        assert_eq!((whole[1].event.as_deref(), whole[1].data.as_str()), (Some("end"), "a\nb"));
        let mut reader = Reader::default();
        let bytewise: Vec<Frame> = text.bytes().flat_map(|byte| reader.take(&[byte]).unwrap()).collect();
        assert_eq!(bytewise, whole);
    }

    #[test]
    fn a_frame_without_end_is_given_up() {
        let mut reader = Reader::default();
        assert_eq!(reader.take(&vec![b'x'; LONGEST + 1]), Err(StreamError::TooLong));
        assert_eq!(Reader::default().take(b"data: \xff\n\n"), Err(StreamError::NotText));
    }
}
