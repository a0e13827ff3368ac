//! The marks of the end-to-end tests, by which `./dev test` chooses what it runs again as an ordinary user. A marked test `name` is called
//! `name::once` or `name::limits`.

use proc_macro::{TokenStream, TokenTree};

/// Says of a test that it ends in the same way whoever runs it. It stands before `#[test]` or `#[tokio::test]`.
///
/// Whatever makes, measures or attacks a sandbox can end differently for root and for an ordinary user (namespaces, id
/// maps, mounts, control groups, owners of files, an engine's socket): that is not marked, and runs as both. Where it is
/// about the record, the settings, the model or the words of an error, once is enough. If in doubt, leave the mark out.
#[proc_macro_attribute]
pub fn once(arguments: TokenStream, function: TokenStream) -> TokenStream {
    marked("once", &arguments, function)
}

/// Says of a test that it depends on how limits are held: in control groups, or without them. It stands before `#[test]` or
/// `#[tokio::test]`.
///
/// Such a test runs as root, as an ordinary user, and once more as an ordinary user with control groups of its own. Where an
/// engine holds the limits, as those of containers, the mark is left out.
#[proc_macro_attribute]
pub fn limits(arguments: TokenStream, function: TokenStream) -> TokenStream {
    marked("limits", &arguments, function)
}

fn marked(mark: &str, arguments: &TokenStream, function: TokenStream) -> TokenStream {
    let words: Vec<TokenTree> = function.into_iter().collect();
    let start = words.iter().position(|word| is(word, "async") || is(word, "fn"));
    let name = words.iter().skip_while(|word| !is(word, "fn")).nth(1);
    let (Some(start), Some(name), true) = (start, name, arguments.is_empty()) else {
        return parse(&format!(
            "compile_error!(\"#[{mark}] stands before a test, and takes no arguments\");"
        ));
    };
    let (attributes, function) = words.split_at(start);
    let attributes: TokenStream = attributes.iter().cloned().collect();
    let test = if is(&function[0], "async") {
        format!("async fn {mark}() {{ super::{name}().await }}")
    } else {
        format!("fn {mark}() {{ super::{name}() }}")
    };
    let mut marked = parse(&format!("#[cfg(test)] mod {name} {{ {attributes} {test} }} #[cfg(test)]"));
    marked.extend(function.iter().cloned());
    marked
}

fn is(word: &TokenTree, name: &str) -> bool {
    matches!(word, TokenTree::Ident(word) if word.to_string() == name)
}

fn parse(text: &str) -> TokenStream {
    text.parse().expect("this is Rust")
}
