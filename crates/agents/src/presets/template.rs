//! Fills values into a preset's texts: `{{name}}` as it is, `{{json:name}}` as a JSON string (which
//! is also a TOML string), `{{part:name}}` as a part of such a string.

use std::collections::BTreeMap;

use thiserror::Error;

/// A placeholder that names no known value.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{{{{{name}}}}}` in the preset is unknown; known are: {known}")]
pub struct UnknownValue {
    name: String,
    known: String,
}

/// The values a preset may use.
pub(super) type Values = BTreeMap<&'static str, String>;

/// Returns the text with its values filled in.
pub(super) fn render(text: &str, values: &Values) -> Result<String, UnknownValue> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((name, behind)) = after.split_once("}}") else { break };
        out.push_str(before);
        out.push_str(&value(name.trim(), values)?);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn value(name: &str, values: &Values) -> Result<String, UnknownValue> {
    let (form, plain) = name.split_once(':').unwrap_or(("", name));
    let Some(value) = values.get(plain) else {
        let known = values.keys().copied().collect::<Vec<_>>().join(", ");
        return Err(UnknownValue { name: name.to_owned(), known });
    };
    // opencode looks for `{env:…}` and `{file:…}` in the text before it reads it as JSON.
    let quoted = serde_json::Value::from(value.as_str()).to_string().replace('{', "\\u007b");
    Ok(match form {
        "json" => quoted,
        "part" => quoted[1..quoted.len() - 1].to_owned(),
        _ => value.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_filled_in_plain_or_quoted() {
        let values = Values::from([("patterm", "/a \"b\"/patterm".to_owned())]);
        let check = |text: &str| render(text, &values);
        assert_eq!(check("{\"a\":{}}").as_deref(), Ok("{\"a\":{}}"));
        assert_eq!(check("x {{patterm}} y").as_deref(), Ok("x /a \"b\"/patterm y"));
        assert_eq!(check("[{{json:patterm}}]").as_deref(), Ok(r#"["/a \"b\"/patterm"]"#));
        assert_eq!(check("\"{{part:patterm}} x\"").as_deref(), Ok(r#""/a \"b\"/patterm x""#));
        assert_eq!(check("{{").as_deref(), Ok("{{"));
        let braces = Values::from([("x", "{env:HOME}".to_owned())]);
        assert_eq!(render("{{json:x}}", &braces).as_deref(), Ok(r#""\u007benv:HOME}""#));
        let unknown = check("{{json:tokn}}").unwrap_err().to_string();
        assert_eq!(unknown, "`{{json:tokn}}` in the preset is unknown; known are: patterm");
    }
}
