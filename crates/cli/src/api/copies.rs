//! Keeps a copy of the objects in the folder, so that the gateway can start when the store cannot be opened.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_apiserver::{DataDir, ObjectStream, ObjectsAt};
use tokio::time::sleep;

/// The shortest time between two copies, however often the objects change.
const PAUSE: Duration = Duration::from_secs(1);

/// How long to wait before a copy that failed is tried again: the disk may have room then.
const RETRY: Duration = Duration::from_secs(10);

/// Copies the objects whenever they change, until the store is closed. Statuses alone are not worth a copy.
pub(super) async fn keep(data: DataDir, mut objects: ObjectStream) {
    while let Some(state) = objects.next().await {
        let mut is_failing = false;
        while let Err(error) = write(&data, &state).await {
            if !std::mem::replace(&mut is_failing, true) {
                tracing::warn!(
                    error,
                    "cannot write the copy of the objects; a start without the store would use an older copy"
                );
            }
            sleep(RETRY).await;
        }
        if is_failing {
            tracing::info!("the copy of the objects is up to date again");
        }
        sleep(PAUSE).await;
    }
}

async fn write(data: &DataDir, state: &Arc<ObjectsAt>) -> Result<(), String> {
    let (data, state) = (data.clone(), Arc::clone(state));
    let written = tokio::task::spawn_blocking(move || data.write_objects_copy(&state)).await;
    written.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
