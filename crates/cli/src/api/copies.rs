//! Keeps a copy of the objects in the folder, so that the gateway can start when the store cannot be opened.

use std::time::Duration;

use evenkeel_apiserver::{DataDir, ObjectStream};
use tokio::time::sleep;

/// The shortest time between two copies, however often the objects change.
const PAUSE: Duration = Duration::from_secs(1);

/// Copies the objects whenever they change, until the store is closed.
pub(super) async fn keep(data: DataDir, mut objects: ObjectStream) {
    let mut is_failing = false;
    while let Some(state) = objects.next().await {
        let folder = data.clone();
        let written = tokio::task::spawn_blocking(move || folder.write_objects_copy(&state)).await;
        match &written {
            Ok(Err(error)) if !is_failing => {
                tracing::warn!(%error, "cannot write the copy of the objects; a start without the store would use an older copy");
            }
            Ok(Ok(())) if is_failing => tracing::info!("the copy of the objects is up to date again"),
            _ => {}
        }
        is_failing = !matches!(written, Ok(Ok(())));
        sleep(PAUSE).await;
    }
}
