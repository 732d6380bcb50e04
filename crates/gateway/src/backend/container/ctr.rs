//! containerd's tool `ctr`: how it is called, and what its output means. Its API would need a
//! protocol compiler at build time; see docs/decisions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use tokio::net::UnixStream;

use super::command::CommandRunner;
use super::info::EngineError;
use super::settings::EngineEndpoint;

/// How deep an index may refer to further ones.
const INDEX_DEPTH: usize = 3;

/// The tool, for one socket and namespace.
#[derive(Debug, Clone)]
pub(super) struct Ctr {
    socket: PathBuf,
    namespace: String,
    pub(super) runner: CommandRunner,
}

/// A container as containerd describes it.
#[derive(Debug, Deserialize)]
pub(super) struct Info {
    #[serde(rename = "ID")]
    pub(super) id: String,
    #[serde(rename = "Labels", default)]
    pub(super) labels: Option<BTreeMap<String, String>>,
    #[serde(rename = "Image", default)]
    pub(super) image: String,
}

/// The relevant part of an image's configuration.
#[derive(Debug, Default, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ImageConfig {
    #[serde(rename = "Labels", default)]
    pub(super) labels: Option<BTreeMap<String, String>>,
    #[serde(rename = "Entrypoint", default)]
    entrypoint: Option<Vec<String>>,
    #[serde(rename = "Cmd", default)]
    cmd: Option<Vec<String>>,
}

impl ImageConfig {
    /// The image's default command.
    pub(super) fn command(self) -> Vec<String> {
        self.entrypoint.into_iter().chain(self.cmd).flatten().collect()
    }
}

impl Ctr {
    pub(super) fn new(endpoint: &EngineEndpoint, runner: CommandRunner) -> Self {
        Self { socket: endpoint.socket(), namespace: endpoint.namespace().to_owned(), runner }
    }

    /// The tool with these arguments.
    pub(super) fn argv<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut argv: Vec<String> = ["ctr", "--address"].map(str::to_owned).into();
        argv.push(self.socket.to_string_lossy().into_owned());
        argv.extend(["--connect-timeout", "5s", "--namespace", &self.namespace].map(str::to_owned));
        argv.extend(words.into_iter().map(str::to_owned));
        argv
    }

    /// Checks that containerd is reachable; its tool would wait for it.
    pub(super) async fn check_reachable(&self) -> Result<(), EngineError> {
        let connected = UnixStream::connect(&self.socket).await;
        connected.map(drop).map_err(|error| {
            let socket = self.socket.display();
            EngineError::Unreachable(format!("containerd cannot be reached at {socket}: {error}"))
        })
    }

    /// Runs the tool until it exits.
    pub(super) async fn run(&self, words: &[&str]) -> Result<Vec<u8>, EngineError> {
        self.check_reachable().await?;
        let run = self.runner.run(self.argv(words.iter().copied())).await;
        run.map_err(|message| error_of(&message))
    }

    /// A container's description.
    pub(super) async fn info(&self, name: &str) -> Result<Info, EngineError> {
        let text = self.run(&["containers", "info", name]).await.map_err(|error| match error {
            EngineError::NotFound(_) => EngineError::NotFound(name.to_owned()),
            other => other,
        })?;
        let unread = |e| EngineError::Failed(format!("cannot parse containerd's response: {e}"));
        serde_json::from_slice(&text).map_err(unread)
    }

    /// The first process of a running container.
    pub(super) async fn first_process(&self, id: &str) -> Result<Option<u32>, EngineError> {
        let list = self.run(&["tasks", "ls"]).await?;
        Ok(first_process(&String::from_utf8_lossy(&list), id))
    }

    /// The configurations of an image, one per platform that is available.
    pub(super) async fn configs(&self, image: &str) -> Result<Vec<ImageConfig>, EngineError> {
        let filter = format!("name=={image}");
        let list = self.run(&["images", "ls", &filter]).await?;
        let list = String::from_utf8_lossy(&list).into_owned();
        let digest = digest(&list, image)
            .ok_or_else(|| EngineError::Failed(format!("containerd has no image `{image}`")))?;
        let (mut configs, mut next) = (Vec::new(), vec![(digest.to_owned(), 0)]);
        while let Some((digest, depth)) = next.pop() {
            // Parts for other platforms may be missing.
            let Ok(blob) = self.run(&["content", "get", &digest]).await else { continue };
            let Ok(blob) = serde_json::from_slice::<Value>(&blob) else { continue };
            if let Some(config) = blob["config"]["digest"].as_str() {
                let config = self.run(&["content", "get", config]).await?;
                configs.extend(config_of(&config));
            }
            let parts = blob["manifests"].as_array().filter(|_| depth < INDEX_DEPTH);
            let parts = parts.into_iter().flatten().filter_map(|part| part["digest"].as_str());
            next.extend(parts.map(|digest| (digest.to_owned(), depth + 1)));
        }
        match configs.is_empty() {
            true => Err(EngineError::Failed(format!("cannot read the image `{image}`"))),
            false => Ok(configs),
        }
    }
}

fn config_of(blob: &[u8]) -> Option<ImageConfig> {
    let blob: Value = serde_json::from_slice(blob).ok()?;
    match &blob["config"] {
        Value::Null => Some(ImageConfig::default()),
        config => ImageConfig::deserialize(config).ok(),
    }
}

/// The meaning of the tool's error message.
fn error_of(message: &str) -> EngineError {
    let message = message.trim_start_matches("ctr: ");
    let is = |words: &[&str]| words.iter().any(|as_str| message.contains(as_str));
    if is(&["connection refused", "Unavailable", "failed to dial", "error reading from server"]) {
        return EngineError::Unreachable(format!("containerd does not respond: {message}"));
    }
    if message.contains("not found") {
        return EngineError::NotFound(message.to_owned());
    }
    EngineError::Failed(message.to_owned())
}

/// The process of a running task in a list of tasks: `TASK PID STATUS`.
fn first_process(list: &str, id: &str) -> Option<u32> {
    let mut rows = list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    match rows.find(|row| row.first() == Some(&id))?.as_slice() {
        [_, pid, "RUNNING"] => pid.parse().ok(),
        _ => None,
    }
}

/// The digest of an image in a list of images: `REF TYPE DIGEST …`.
fn digest<'a>(list: &'a str, image: &str) -> Option<&'a str> {
    let row = list.lines().find(|line| line.split_whitespace().next() == Some(image))?;
    row.split_whitespace().find(|as_str| as_str.starts_with("sha256:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_the_tool_is_parsed() {
        let tasks = "TASK    PID      STATUS    \nbox     1234     RUNNING\nbox2    1    STOPPED\n";
        assert_eq!(first_process(tasks, "box"), Some(1234));
        assert_eq!(first_process(tasks, "box2"), None);
        assert_eq!(first_process(tasks, "bo"), None);
        let images =
            "REF TYPE DIGEST SIZE\nlocal/a:1 application/x sha256:aa 1.2 MiB linux/amd64 -\n";
        assert_eq!(digest(images, "local/a:1"), Some("sha256:aa"));
        assert_eq!(digest(images, "local/a"), None);
    }

    #[test]
    fn error_messages_of_the_tool_are_classified() {
        let missing = error_of("ctr: container \"x\" in namespace \"default\": not found");
        assert!(matches!(missing, EngineError::NotFound(_)), "{missing:?}");
        let down = error_of("ctr: connection error: desc = \"transport: connection refused\"");
        assert!(matches!(down, EngineError::Unreachable(_)), "{down:?}");
        assert!(matches!(error_of("ctr: no"), EngineError::Failed(_)));
    }

    #[test]
    fn the_configuration_of_an_image_is_parsed() {
        let blob = r#"{"config": {"Labels": {"a": "b"}, "Cmd": ["/app/mcp"], "Env": ["X=1"]}}"#;
        let config = config_of(blob.as_bytes()).unwrap();
        assert_eq!(config.labels.as_ref().unwrap()["a"], "b");
        assert_eq!(config.command(), ["/app/mcp"]);
        assert_eq!(config_of(b"{}"), Some(ImageConfig::default()));
    }
}
