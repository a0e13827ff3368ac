//! Floods: more connections, heads and bodies than anybody needs, from one sandbox.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use cofferdam_core::gateway;

/// Connections that are held open at a time: more than the gateway and the broker have places.
const HELD: usize = 1500;
/// A name's rest, so that each refusal is another one.
const DIFFERENT: usize = 3000;

/// Everything at once: held heads, different refusals, readers that never read, huge bodies. `endless` is a
/// listed target that never stops sending. Then prints `flooded`, and holds on until the file `over` is there.
///
/// # Errors
/// If not even one connection can be made, or nothing can be printed.
pub fn flood(endless: &str, over: &std::path::Path) -> io::Result<()> {
    refusals()?;
    bodies()?;
    let readers: Vec<TcpStream> = (0..64).map_while(|_| start(&connect(endless)).ok()).collect();
    let heads: Vec<TcpStream> = (0..HELD).map_while(|_| start("GET /slow HTTP/1.1\r\nX: ").ok()).collect();
    println!("flooded with {} readers and {} heads", readers.len(), heads.len());
    io::stdout().flush()?;
    while !over.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Each of another name, many on one connection.
fn refusals() -> io::Result<()> {
    for first in (0..DIFFERENT).step_by(100) {
        let request = |number: usize| {
            let host = format!("flood-{number}.test");
            format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")
        };
        let mut wire: String = (first..first + 99).map(request).collect();
        wire.push_str("GET http://last.test/ HTTP/1.1\r\nHost: last.test\r\nConnection: close\r\n\r\n");
        let mut stream = start(&wire)?;
        let _ = io::copy(&mut stream, &mut io::sink());
    }
    Ok(())
}

/// Larger than a request to the model may be.
fn bodies() -> io::Result<()> {
    let head = "POST /model/anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    for _ in 0..2 {
        let mut stream = start(head)?;
        let chunk = [b"100000\r\n".as_slice(), &vec![b'x'; 1 << 20], b"\r\n"].concat();
        let sent = (0..70).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        // The refusal is on record; the answer itself may be lost with the bytes that nobody read.
        let _ = io::copy(&mut stream, &mut io::sink());
        println!("{sent} MiB were sent");
    }
    Ok(())
}

fn connect(target: &str) -> String {
    format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
}

fn start(wire: &str) -> io::Result<TcpStream> {
    let address = (Ipv4Addr::LOCALHOST, gateway::PORT).into();
    // Once every place is taken, nobody answers.
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(2))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    stream.write_all(wire.as_bytes())?;
    Ok(stream)
}
