//! Images built by the tests: a shell, and an MCP server that is a script.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// The command of the server in each image.
pub(super) const COMMAND: &str = "/app/mcp";

/// A server that responds with its own process id. Called as `stay`, it leaves an orphaned process,
/// ignores signals, and does not exit at the end of its input.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='"protocolVersion":"2025-06-18","capabilities":{"tools":{}}'
      echo '{"jsonrpc":"2.0","id":'"$id"',"result":{'"$result"',"serverInfo":{"name":"box","version":"1"}}}'
      continue ;;
    *'"method":"server/discover"'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"what?"}}'
      continue ;;
    *'"name":"fail"'*)
      echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-7,"message":"no","data":{"big":12345678901234567890}}}'
      continue ;;
    *'"name":"stay"'*)
      mark=${line#*'"mark":"'}; mark=${mark%%\"*}; stay=yes
      trap '' TERM HUP INT
      (setsid sleep "$mark" </dev/null >/dev/null 2>&1 &) ;;
    *'"name":"write"'*)
      if echo x > /written; then wrote=true; else wrote=false; fi 2>/dev/null
      echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"wrote":'"$wrote"',"said":"'"$SAID"'"}}'
      continue ;;
  esac
  echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"pid":'$$'}}'
done
while [ -n "$stay" ]; do sleep "$mark"; done
"#;

/// The files of an image.
pub(super) fn root(folder: &Path) {
    for name in ["bin", "app", "tmp", "proc", "dev", "sys", "etc"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::copy("/bin/busybox", folder.join("bin/busybox")).unwrap();
    for name in ["sh", "cat", "chmod", "echo", "setsid", "sleep"] {
        symlink("busybox", folder.join("bin").join(name)).unwrap();
    }
    let server = folder.join("app/mcp");
    fs::write(&server, SERVER).unwrap();
    fs::set_permissions(server, fs::Permissions::from_mode(0o755)).unwrap();
}
