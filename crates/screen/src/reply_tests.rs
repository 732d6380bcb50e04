//! Replies come from a fixed list and contain nothing that the program chose.

use crate::{Screen, Size, TerminalName};

fn replies(bytes: &str) -> String {
    let mut screen = Screen::new(Size::DEFAULT);
    screen.feed(bytes.as_bytes());
    assert_eq!(screen.failures(), 0, "{bytes:?}");
    String::from_utf8(screen.take_replies()).unwrap()
}

/// Every query that gets a reply, with the reply.
const ANSWERED: [(&str, &str); 63] = [
    ("\x1b]7501;?\x07", "\x1b]7501;?\x1b\\"),
    ("\x1b[c", "\x1b[?64;6;21;22;28c"),
    ("\x1b[0c", "\x1b[?64;6;21;22;28c"),
    ("\x1bZ", "\x1b[?64;6;21;22;28c"),
    ("\x1b[>c", "\x1b[>84;0;0c"),
    ("\x1b[>0c", "\x1b[>84;0;0c"),
    ("\x1b[>q", concat!("\x1bP>|patterm ", env!("CARGO_PKG_VERSION"), "\x1b\\")),
    ("\x1b[>0q", concat!("\x1bP>|patterm ", env!("CARGO_PKG_VERSION"), "\x1b\\")),
    ("\x1b[5n", "\x1b[0n"),
    ("\x1b[3;7H\x1b[6n", "\x1b[3;7R"),
    ("\x1b[3;7H\x1b[?6n", "\x1b[?3;7;1R"),
    ("\x1b[2;9r\x1b[?6h\x1b[2;2H\x1b[6n", "\x1b[2;2R"),
    ("\x1b[?996n", "\x1b[?997;1n"),
    ("\x1b[?u", "\x1b[?0u"),
    ("\x1b[>3u\x1b[?u", "\x1b[?3u"),
    ("\x1b[?4m", "\x1b[>4;0m"),
    ("\x1b[18t", "\x1b[8;24;80t"),
    ("\x1b[19t", "\x1b[9;24;80t"),
    ("\x1b[?2026$p", "\x1b[?2026;2$y"),
    ("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y"),
    ("\x1b[?9999$p", "\x1b[?9999;0$y"),
    ("\x1b[4$p", "\x1b[4;2$y"),
    ("\x1b]10;?\x1b\\", "\x1b]10;rgb:d8d8/d8d8/d8d8\x1b\\"),
    ("\x1b]11;?\x07", "\x1b]11;rgb:1818/1818/1818\x07"),
    ("\x1b]12;?\x07", "\x1b]12;rgb:d8d8/d8d8/d8d8\x07"),
    ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
    ("\x1b]4;257;?\x07", "\x1b]4;257;rgb:d8d8/d8d8/d8d8\x07"),
    ("\x1b]5;1;?\x1b\\", "\x1b]5;1;rgb:d8d8/d8d8/d8d8\x1b\\"),
    ("\x1b]19;?\x07", "\x1b]19;rgb:1818/1818/1818\x07"),
    ("\x1bP$qm\x1b\\", "\x1bP1$r0m\x1b\\"),
    ("\x1b[1;4:3;5;38;5;20m\x1bP$qm\x1b\\", "\x1bP1$r0;1;5;4:3;38;5;20m\x1b\\"),
    ("\x1b[2;9r\x1bP$qr\x1b\\", "\x1bP1$r2;9r\x1b\\"),
    ("\x1b[?69h\x1b[3;7s\x1bP$qs\x1b\\", "\x1bP1$r3;7s\x1b\\"),
    ("\x1b[4 q\x1bP$q q\x1b\\", "\x1bP1$r4 q\x1b\\"),
    ("\x1b[1\"q\x1bP$q\"q\x1b\\", "\x1bP1$r1\"q\x1b\\"),
    ("\x1bP$q\"p\x1b\\", "\x1bP1$r64;1\"p\x1b\\"),
    ("\x1b[61\"p\x1b[c", "\x1b[?1;2c"),
    ("\x1b[62\"p\x1b[c", "\x1b[?62;6;22c"),
    ("\x1bP$q$}\x1b\\", "\x1bP1$r0$}\x1b\\"),
    ("\x1bP$q$~\x1b\\", "\x1bP1$r0$~\x1b\\"),
    ("\x1b[2*x\x1bP$q*x\x1b\\", "\x1bP1$r2*x\x1b\\"),
    ("\x1bP$qt\x1b\\", "\x1bP1$r24t\x1b\\"),
    ("\x1bP$q|\x1b\\", "\x1bP0$r\x1b\\"),
    ("\x1bP+q544e\x1b\\", "\x1bP1+r544E=787465726D2D323536636F6C6F72\x1b\\"),
    ("\x1bP+q436f;7878\x1b\\", "\x1bP1+r436F=323536\x1b\\\x1bP0+r\x1b\\"),
    ("\x1bP+q7878\x1b\\", "\x1bP0+r\x1b\\"),
    ("\x1b[?12$p", "\x1b[?12;1$y"),
    ("\x1b[?12l\x1b[?12$p", "\x1b[?12;2$y"),
    ("\x1b[?2027$p", "\x1b[?2027;1$y"),
    ("\x1b[?2027l\x1b[?2027$p", "\x1b[?2027;2$y"),
    ("\x1b[12$p", "\x1b[12;3$y"),
    ("\x1b[?2048h", "\x1b[48;24;80;0;0t"),
    ("\x1b[11t", "\x1b[1t"),
    ("\x1b[13t", "\x1b[3;0;0t"),
    ("\x1b[?15n", "\x1b[?13n"),
    ("\x1b[?25n", "\x1b[?20n"),
    ("\x1b[?26n", "\x1b[?27;1;0;0n"),
    ("\x1b[?55n", "\x1b[?50n"),
    ("\x1b[?56n", "\x1b[?57;0n"),
    ("\x1b[?62n", "\x1b[0*{"),
    ("\x1b[?63;7n", "\x1bP7!~0000\x1b\\"),
    ("\x1b[?75n", "\x1b[?70n"),
    ("\x1b[?85n", "\x1b[?83n"),
];

#[test]
fn each_known_query_gets_its_reply() {
    for (question, answer) in ANSWERED {
        assert_eq!(replies(question), answer, "{question:?}");
    }
}

#[test]
fn a_terminal_may_have_another_name_and_keeps_it() {
    let mut screen = Screen::new(Size::DEFAULT);
    screen.set_terminal_name(TerminalName::try_from("tmux 3.5a".to_owned()).unwrap());
    for before in ["", "\x1bc", "\x1b[!p", "\x1b[?1049h"] {
        screen.feed(format!("{before}\x1b[>q").as_bytes());
        assert_eq!(screen.take_replies(), b"\x1bP>|tmux 3.5a\x1b\\", "{before:?}");
    }
    screen.resize(Size::new(10, 30));
    screen.feed(b"\x1b[>q");
    assert_eq!(screen.take_replies(), b"\x1bP>|tmux 3.5a\x1b\\");
}

/// Text that a hostile program would like to have typed.
const EVIL: &str = "EVIL;rm -rf ~";

/// Sequences that try to make a terminal send text of the program's choice, or crash.
fn hostile() -> Vec<String> {
    let mut all = vec![
        format!("\x1b]2;{EVIL}\x07\x1b[21t"),
        format!("\x1b]2;{EVIL}\r\x07\x1b[21t"),
        format!("\x1b]0;{EVIL}\x1b\\\x1b[20t"),
        format!("\x1b]2;{EVIL}\x07\x1b[22t\x1b[23t\x1b[21t"),
        format!("\x1b]l{EVIL}\x1b\\\x1b]L{EVIL}\x1b\\"),
        "\x05".into(),
        "\x1b[0x\x1b[1x".into(),
        "\x1b[?15n\x1b[?25n\x1b[?26n\x1b[?53n\x1b[?62n\x1b[?63n\x1b[?75n\x1b[?85n".into(),
        "\x1b[11t\x1b[13t\x1b[14t\x1b[15t\x1b[16t".into(),
        "\x1b[1t\x1b[2t\x1b[3;0;0t\x1b[4;9;9t\x1b[8;9999;9999t\x1b[9;1t\x1b[10;1t".into(),
        "\x1b[>4;2m\x1b[=c\x1b[=0c".into(),
        format!("\x1b_G{EVIL}\x1b\\\x1b^{EVIL}\x1b\\\x1bX{EVIL}\x1b\\"),
        format!("\x1bPtmux;{EVIL}\x1b\\\x1bP1000p{EVIL}\x1b\\"),
        format!("\x1bP0|17/{EVIL}\x1b\\\x1bP1;1|17/4556494c\x1b\\"),
        format!("\x1b]52;c;?\x07\x1b]52;;?\x07\x1b]52;p;{EVIL}\x07"),
        format!("\x1b]50;?\x07\x1b]50;{EVIL}\x07\x1b]51;E{EVIL}\x07"),
        format!("\x1b]1337;ReportVariable={EVIL}\x07\x1b]1337;ReportCellSize\x07"),
        format!("\x1b]66;s=2;{EVIL}\x07\x1b]99;i=1:p=?;{EVIL}\x07"),
        format!("\x1b]8;id={EVIL};{EVIL}\x07x\x1b]8;;\x07"),
        format!("\x1b]10;{EVIL}\x07\x1b]11;{EVIL}\x07\x1b]4;1;{EVIL}\x07\x1b]104\x07"),
        "\x1b[65535b\x1b[65535S\x1b[65535T\x1b[65535L\x1b[65535M\x1b[65535@\x1b[65535P".into(),
        "a\x1b[4294967296b\x1b[99999999999999999999X".into(),
        "\x1b[;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;;m".into(),
        "\x1b[::::::::::::::::::::::::::::::::::::::::::::::::::::::::m".into(),
        "\x1b[38;2m\x1b[38;5m\x1b[38m\x1b[38:2m\x1b[58:2::1m".into(),
        "\u{9b}c\u{90}$qm\u{9c}\u{9d}11;?\u{9c}".into(),
    ];
    // Device control strings with queries: the reply must not quote the setting.
    for asked in ["m", "r", "s", "q", " q", "\"p", "\"q", "t", "|", "x", EVIL] {
        all.push(format!("\x1bP$q{asked}\x1b\\"));
        all.push(format!("\x1bP+q{asked}\x1b\\"));
        all.push(format!("\x1bP1$r{asked}\x1b\\\x1bP1+r{asked}\x1b\\"));
    }
    for code in (0..130).chain([133, 176, 633, 666, 697, 777, 1337, 7501, 9999]) {
        all.push(format!("\x1b]{code};{EVIL}\x07"));
        all.push(format!("\x1b]{code};?;{EVIL}\x1b\\"));
    }
    for last in 0x40..0x7f {
        let last = char::from(last);
        for marker in ["", "?", ">", "=", "<"] {
            all.push(format!("{EVIL}\x1b[{marker}1;2;3{last}"));
        }
    }
    all
}

#[test]
fn replies_contain_nothing_that_a_program_chose() {
    let all = hostile();
    assert!(all.len() >= 300, "{}", all.len());
    for sequence in all {
        let reply = replies(&sequence);
        assert!(!reply.contains("EVIL") && !reply.contains("4556"), "{sequence:?}: {reply:?}");
        assert!(!reply.contains(['\r', '\n']), "{sequence:?}: {reply:?}");
        check_known(&sequence, &reply);
    }
}

/// Checks that each reply is one of the list, apart from numbers.
fn check_known(sequence: &str, reply: &str) {
    let shape = |text: &str| -> String {
        let mut shape: String =
            text.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }).collect();
        while shape.contains("00") {
            shape = shape.replace("00", "0");
        }
        shape
    };
    let mut rest = reply;
    'answers: while !rest.is_empty() {
        for end in (1..=rest.len()).rev() {
            let known = |(_, answer): &(&str, &str)| shape(answer) == shape(&rest[..end]);
            if rest.is_char_boundary(end) && ANSWERED.iter().any(known) {
                rest = &rest[end..];
                continue 'answers;
            }
        }
        panic!("{sequence:?} was answered with {rest:?}");
    }
}

#[test]
fn pending_replies_are_bounded() {
    assert!(replies(&"\x1b[c".repeat(100_000)).len() <= 4 << 10);
}
