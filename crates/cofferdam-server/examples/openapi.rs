//! Prints the OpenAPI document, for `docs/openapi.json`.

fn main() -> Result<(), serde_json::Error> {
    println!("{}", serde_json::to_string_pretty(&cofferdam_server::openapi())?);
    Ok(())
}
