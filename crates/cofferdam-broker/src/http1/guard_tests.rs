use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

const TIME: Duration = Duration::from_secs(10);

fn guarded() -> (HeadGuard<DuplexStream>, DuplexStream) {
    let (near, far) = duplex(1 << 20);
    (HeadGuard::new(near, 8192, TIME), far)
}

async fn read_all(pieces: &[&[u8]]) -> io::Result<Vec<u8>> {
    let (mut near, mut far) = guarded();
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    let writer = tokio::spawn(async move {
        for piece in pieces {
            if far.write_all(&piece).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    let mut read = Vec::new();
    let outcome = near.read_to_end(&mut read).await;
    drop(near);
    writer.await.unwrap();
    outcome.map(|_| read)
}

fn fault_of(error: &io::Error) -> Option<HeadFault> {
    error.get_ref().and_then(|inner| inner.downcast_ref()).copied()
}

#[tokio::test]
async fn several_requests_pass_whole_in_pieces_of_any_size() {
    let stream =
        b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /b HTTP/1.1\r\nHost: a\r\n\r\n\
        POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nwhatever\n\nfollows";
    for size in [1, 2, 3, 7, 50, 1000] {
        let pieces: Vec<&[u8]> = stream.chunks(size).collect();
        assert_eq!(read_all(&pieces).await.unwrap(), stream, "pieces of {size}");
    }
}

#[tokio::test]
async fn a_bad_second_head_never_reaches_the_reader() {
    let first = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let second = b"GET /b HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n";
    for pieces in [vec![first.as_slice(), second], vec![&[first.as_slice(), second].concat()]] {
        let error = read_all(&pieces).await.unwrap_err();
        assert!(matches!(fault_of(&error), Some(HeadFault::Malformed(_))), "{error}");
    }
}

#[tokio::test]
async fn what_came_before_a_bad_head_passes_whatever_the_pieces() {
    let first = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    let stream = [first.as_slice(), b"GET /b HTTP/1.1\nHost: a\r\n\r\n"].concat();
    for size in 1..=stream.len() {
        let (mut near, mut far) = guarded();
        let (mut read, mut pieces) = (Vec::new(), stream.chunks(size));
        let refused = loop {
            match pieces.next() {
                Some(piece) => far.write_all(piece).await.unwrap(),
                None => far.shutdown().await.unwrap(),
            }
            // Never more than has arrived can be read, so this ends with each piece.
            let mut room = [0; 64];
            match tokio::time::timeout(Duration::ZERO, near.read(&mut room)).await {
                Ok(Ok(count)) => read.extend_from_slice(&room[..count]),
                Ok(Err(error)) => break error,
                Err(_) => {}
            }
        };
        assert!(matches!(fault_of(&refused), Some(HeadFault::Malformed(_))), "pieces of {size}: {refused}");
        assert_eq!(read, first, "pieces of {size}");
    }
}

#[tokio::test]
async fn a_head_without_an_end_is_cut_at_its_bound() {
    let endless = [b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 9000]].concat();
    assert_eq!(fault_of(&read_all(&[&endless]).await.unwrap_err()), Some(HeadFault::TooLarge));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_drips_is_cut_after_its_time() {
    let (mut near, mut far) = guarded();
    let dripping = tokio::spawn(async move {
        for byte in b"GET / HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
            if far.write_all(&[*byte]).await.is_err() {
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
    });
    let error = near.read_u8().await.unwrap_err();
    assert_eq!(fault_of(&error), Some(HeadFault::TooSlow));
    dripping.abort();
}
