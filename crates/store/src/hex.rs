//! Bytes as lower-case hexadecimal text.

use std::fmt::Write;

/// Encodes each byte as two digits.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Decodes exactly `N * 2` hexadecimal digits.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let digit = |d: u8| (d as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_and_decodes() {
        assert_eq!(encode(&[0, 0x1f, 0xff]), "001fff");
        assert_eq!(decode::<3>("001Fff"), Some([0, 0x1f, 0xff]));
        assert_eq!(decode::<3>("001ff"), None);
        assert_eq!(decode::<2>("001g"), None);
        assert_eq!(decode::<1>("é"), None);
    }
}
