//! From HTML to Markdown.

use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use url::Url;

/// An article that is shorter is more likely a part of a page that is none: a list of links, a search form.
const SHORTEST_ARTICLE: usize = 500;

/// What says nothing as text.
const SKIPPED: [&str; 8] = ["head", "iframe", "meta", "noscript", "script", "style", "svg", "template"];

/// A page's title, and its article, or all of it if there is none. Links are absolute.
pub(super) fn of(html: &str, url: &str) -> (String, String) {
    let config = Config { text_mode: TextMode::Markdown, disable_json_ld: true, ..Config::default() };
    let article = Readability::new(html, Some(url), Some(config)).and_then(|mut reader| reader.parse());
    match article {
        Ok(article) if article.length >= SHORTEST_ARTICLE => {
            (article.title, article.text_content.to_string())
        }
        found => {
            let (title, text) = whole(html, url);
            (found.map_or(title, |article| article.title), text)
        }
    }
}

fn whole(html: &str, url: &str) -> (String, String) {
    let page = Document::from(html);
    let base = Url::parse(url).ok();
    for link in page.select("a[href]").iter() {
        let target = link.attr("href").and_then(|href| base.as_ref()?.join(&href).ok());
        if let Some(target) = target {
            link.set_attr("href", target.as_str());
        }
    }
    let title = page.select("title").text().trim().to_owned();
    (title, page.md(Some(&SKIPPED)).to_string())
}
