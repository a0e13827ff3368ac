//! Conversations with the scripted model, over real connections.

use cofferdam_direct::system_prompt;

#[test]
fn a_system_prompt_takes_the_place_of_ours_and_another_is_added() {
    assert!(system_prompt(None, None).starts_with("You answer questions"));
    assert_eq!(system_prompt(Some("Only rhymes."), None), "Only rhymes.");
    assert_eq!(system_prompt(Some("Only rhymes."), Some("And short.")), "Only rhymes.\n\nAnd short.");
    let added = system_prompt(None, Some("In French."));
    assert!(added.starts_with("You answer questions") && added.ends_with("\n\nIn French."));
}
