//! What pages become, whatever a server sends.

use std::io::Write as _;

use cofferdam_direct::sealed::{Answer, Job, Page, PageJob, SealedCall, work};

fn job() -> PageJob {
    PageJob {
        url: "https://a.example/docs/index.html".to_owned(),
        content_type: Some("text/html".to_owned()),
        content_encoding: None,
        offset: 0,
        most_chars: 100_000,
    }
}

fn read_bytes(job: &PageJob, bytes: &[u8]) -> Result<Page, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, bytes).unwrap();
    let job = Job::Page(job.clone());
    match work(&SealedCall { job, input: Some(path), project: None, out: folder.path().to_owned() }) {
        Answer::Page(page) => Ok(page),
        Answer::Refused { reason } => Err(reason),
        Answer::Text { text } => panic!("{text}"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn a_page_becomes_markdown_with_absolute_links() {
    let words = "The sea is cold and the wall is high. ".repeat(30);
    let html = format!(
        "<html><head><title>Walls</title><script>steal()</script></head><body><nav><a href='/x'>Menu</a></nav>\
         <article><h1>Walls</h1><p>{words}</p><p>See <a href='../more'>more</a>.</p></article></body></html>"
    );
    let page = read_bytes(&job(), html.as_bytes()).unwrap();
    assert_eq!(page.title, "Walls");
    assert!(page.text.contains("[more](https://a.example/more)"), "{}", page.text);
    assert!(page.text.contains("The sea is cold") && !page.text.contains("steal"), "{}", page.text);
    assert_eq!(page.total_chars, page.text.chars().count());

    let part = read_bytes(&PageJob { offset: 5, most_chars: 7, ..job() }, html.as_bytes()).unwrap();
    assert_eq!(part.text, page.text.chars().skip(5).take(7).collect::<String>());
    assert_eq!(part.total_chars, page.total_chars);
}

#[test]
fn a_page_without_an_article_is_shown_whole() {
    let html = "<title>List</title><ul><li><a href='b'>B</a></li><li><a href='//c.example/'>C</a></li></ul>";
    let page = read_bytes(&job(), html.as_bytes()).unwrap();
    assert_eq!(page.title, "List");
    assert!(page.text.contains("[B](https://a.example/docs/b)"), "{}", page.text);
    assert!(page.text.contains("[C](https://c.example/)"), "{}", page.text);
}

#[test]
fn characters_are_read_as_the_server_the_page_or_the_bytes_say() {
    let read = |content_type: &str, bytes: &[u8]| {
        let job = PageJob { content_type: Some(content_type.to_owned()), ..job() };
        read_bytes(&job, bytes).unwrap().text
    };
    assert_eq!(read("text/plain; charset=ISO-8859-1", b"caf\xe9"), "café");
    assert_eq!(read("text/plain; charset=\"Shift_JIS\"", b"\x93\xfa\x96\x7b"), "日本");
    assert!(
        read("text/html", b"<meta charset='windows-1251'><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>").contains("Привет")
    );
    assert_eq!(read("text/plain", "häuser".as_bytes()), "häuser");
    assert_eq!(read("text/plain", b"\xff\xfeh\0i\0"), "hi");
    assert_eq!(read("application/json", br#"{"a": 1}"#), r#"{"a": 1}"#);
}

#[test]
fn what_is_not_text_is_refused_with_its_type() {
    let refused = |content_type: Option<&str>, bytes: &[u8]| {
        let job = PageJob { content_type: content_type.map(str::to_owned), ..job() };
        read_bytes(&job, bytes).unwrap_err()
    };
    assert!(refused(Some("application/pdf"), b"%PDF").contains("`application/pdf`"));
    assert!(refused(Some("image/png\u{1b}[31m"), b"x").contains("`image/png[31m`"));
    assert_eq!(refused(Some("text/html"), b"<p>\0\0\0"), "the page is not text");
    assert_eq!(refused(None, b"\x7fELF\0\0"), "the page is not text");
}

/// The attack: 16 MiB of zeros for each 16 KiB that is sent, also as a bomb that unpacks to another.
#[test]
fn a_bomb_is_unpacked_up_to_the_bound_and_no_further() {
    let job = PageJob { content_encoding: Some("gzip".to_owned()), ..job() };
    let one = gzip(&vec![b' '; 9 << 20]);
    assert!(one.len() < 20_000);
    let error = read_bytes(&job, &[one.clone(), one].concat()).unwrap_err();
    assert_eq!(error, "the page is larger than 16 MiB once it is unpacked");
    let text = read_bytes(&job, &gzip(b"<p>hello</p>")).unwrap().text;
    assert!(text.contains("hello"));
    let cut = &gzip(b"<p>hello there, this is a page</p>")[..20];
    assert!(read_bytes(&job, cut).unwrap_err().contains("packed wrongly"));
    for encoding in ["br", "gzip, gzip", "zstd"] {
        let job = PageJob { content_encoding: Some(encoding.to_owned()), ..job.clone() };
        assert!(read_bytes(&job, b"x").unwrap_err().contains("not asked for"), "{encoding}");
    }
}
