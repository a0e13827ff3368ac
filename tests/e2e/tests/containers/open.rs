//! A container with a network reaches what the engine's network reaches, and not the engine.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use cofferdam_e2e::containers::InContainers;

use crate::in_every_container_mode;

/// Where engines listen that were set up to be asked from elsewhere.
const ASK: &str = r#"
import socket
for port in (2375, 2376, PORT):
    try:
        with socket.create_connection(("host.docker.internal", port), timeout=5) as connection:
            connection.sendall(b"GET /version HTTP/1.0\r\n\r\n")
            print(port, "answers" if connection.recv(1) else "is silent")
    except OSError:
        print(port, "is closed")
"#;

in_every_container_mode! {
    fn the_engine_does_not_answer_at_the_gateway_of_an_open_container(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        // The control: a service of the host on the same address does answer.
        let listener = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 6\r\n\r\nhello\n");
            }
        });
        let script = format!("python3 - <<'END'\n{}\nEND", ASK.replace("PORT", &port.to_string()));
        let finished = stage.run(&["--network", "open", "--image", stage.engine.base_image()], &script);
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
        let printed = stage.fixture.printed(&finished.run_id());
        assert_eq!(printed, ["2375 is closed", "2376 is closed", &format!("{port} answers")]);
    }
}
