use cofferdam_core::LocalUrls;

use super::*;

fn repository(url: &str) -> Result<Repository, String> {
    Repository::parse(&RepoUrl::parse(url, LocalUrls::Allow).unwrap())
}

fn asked(method: &str, path: &str) -> Option<Operation> {
    let repository = repository("https://Git.Example.com/team/app.git").unwrap();
    repository.operation(&method.parse().unwrap(), &path.parse().unwrap())
}

#[test]
fn the_four_operations_are_known_with_and_without_git_at_the_end() {
    for base in ["/git/git.example.com/team/app", "/git/git.example.com:443/team/app.git"] {
        for (method, suffix, operation) in [
            ("GET", "/info/refs?service=git-upload-pack", Operation::AdvertiseFetch),
            ("GET", "/info/refs?service=git-receive-pack", Operation::AdvertisePush),
            ("POST", "/git-upload-pack", Operation::Fetch),
            ("POST", "/git-receive-pack", Operation::Push),
        ] {
            assert_eq!(asked(method, &format!("{base}{suffix}")), Some(operation), "{base}{suffix}");
        }
    }
}

#[test]
fn other_repositories_paths_and_operations_are_none_of_ours() {
    for (method, path) in [
        ("GET", "/git/git.example.com/team/app/info/refs"),
        ("GET", "/git/git.example.com/team/app/info/refs?service=git-upload-archive"),
        ("GET", "/git/git.example.com/team/app/info/refs?service=git-upload-pack&x=1"),
        ("GET", "/git/git.example.com/team/app/info/refs?x=1&service=git-upload-pack"),
        ("GET", "/git/git.example.com/team/app/HEAD"),
        ("GET", "/git/git.example.com/team/app/objects/info/packs"),
        ("POST", "/git/git.example.com/team/app/info/lfs/objects/batch"),
        ("POST", "/git/git.example.com/team/app/info/refs?service=git-upload-pack"),
        ("GET", "/git/git.example.com/team/app/git-upload-pack"),
        ("PUT", "/git/git.example.com/team/app/git-receive-pack"),
        ("POST", "/git/git.example.com/team/app/git-upload-pack?x"),
        ("POST", "/git/git.example.com/team/app2/git-upload-pack"),
        ("POST", "/git/git.example.com/team/app.git.git/git-upload-pack"),
        ("POST", "/git/git.example.com/team/appx.git/git-upload-pack"),
        ("POST", "/git/git.example.com/team/other/../app/git-upload-pack"),
        ("POST", "/git/git.example.com/team/app/../other/git-upload-pack"),
        ("POST", "/git/git.example.com/team//app/git-upload-pack"),
        ("POST", "/git/git.example.com/team/%61pp/git-upload-pack"),
        ("POST", "/git/git.example.com/Team/app/git-upload-pack"),
        ("POST", "/git/git.example.com:444/team/app/git-upload-pack"),
        ("POST", "/git/evil.example.com/team/app/git-upload-pack"),
        ("POST", "/git/git.example.com@evil.com/team/app/git-upload-pack"),
        ("POST", "/git/x@git.example.com/team/app/git-upload-pack"),
        ("POST", "/git//team/app/git-upload-pack"),
        ("POST", "/gitgit.example.com/team/app/git-upload-pack"),
    ] {
        assert_eq!(asked(method, path), None, "{method} {path}");
    }
}

#[test]
fn an_address_that_is_not_plain_https_is_not_served() {
    for url in [
        "ssh://git@host/a",
        "git@host:a",
        "git://host/a",
        "file:///a",
        "https://host",
        "https://host/",
        "https://host/a/../b",
        "https://host//a",
        "https://host/a?x=y",
        "https://host/a#x",
        "https://127.1/a",
    ] {
        assert!(repository(url).is_err(), "{url}");
    }
    assert!(repository(&format!("https://host/{}", "a".repeat(70_000))).is_err());
    assert_eq!(repository("HTTPS://Host:8443/a/b.git/").unwrap().path, "/a/b.git");
}

#[test]
fn every_path_that_is_taken_is_part_of_an_address() {
    for byte in 0..=255 {
        let text = format!("https://host/a{}b", char::from(byte));
        let Ok(url) = RepoUrl::parse(&text, LocalUrls::Allow) else { continue };
        if let Ok(repository) = Repository::parse(&url) {
            let uri: Uri = format!("https://host{}/git-upload-pack", repository.path).parse().unwrap();
            assert_eq!(uri.path(), format!("{}/git-upload-pack", repository.path));
        }
    }
}
