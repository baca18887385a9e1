//! A name server that says what a test says, over UDP and TCP. It reads and writes messages by itself (RFC 1035, 4).

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinHandle;

/// What the server knows of a name.
#[derive(Debug, Clone)]
pub enum Knows {
    /// Addresses, and for how many seconds they are valid.
    A(u32, Vec<Ipv4Addr>),
    Aaaa(u32, Vec<Ipv6Addr>),
    /// Priority, weight, port and target of each.
    Srv(u32, Vec<(u16, u16, u16, &'static str)>),
    /// The name stands for another one.
    Alias(u32, &'static str),
    /// The server fails, with this code.
    Fails(u8),
    /// The server does not answer at all.
    Nothing,
}

/// A question that it was asked: over UDP, or over TCP.
#[derive(Debug, Clone)]
pub struct Asked {
    pub name: String,
    pub kind: u16,
    pub is_tcp: bool,
    pub when: Instant,
}

pub struct NameServer {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    zone: Mutex<HashMap<String, Vec<Knows>>>,
    asked: Mutex<Vec<Asked>>,
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;
/// What fits into a datagram without extensions.
const DATAGRAM: usize = 512;

impl NameServer {
    pub async fn start() -> Self {
        // Both have to have the same port.
        let (udp, tcp) = loop {
            let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
                break (udp, tcp);
            }
        };
        let (address, shared) = (udp.local_addr().unwrap(), Arc::<Shared>::default());
        let (of_udp, of_tcp) = (Arc::clone(&shared), Arc::clone(&shared));
        let by_udp = async move {
            let mut datagram = [0; 2048];
            loop {
                let (length, from) = udp.recv_from(&mut datagram).await.unwrap();
                if let Some(answer) = of_udp.answer(&datagram[..length], false) {
                    // Whoever asked may be gone.
                    let _ = udp.send_to(&answer, from).await;
                }
            }
        };
        let by_tcp = async move {
            loop {
                let (mut stream, _) = tcp.accept().await.unwrap();
                let length = stream.read_u16().await.unwrap();
                let mut question = vec![0; length.into()];
                stream.read_exact(&mut question).await.unwrap();
                if let Some(answer) = of_tcp.answer(&question, true) {
                    stream.write_u16(u16::try_from(answer.len()).unwrap()).await.unwrap();
                    stream.write_all(&answer).await.unwrap();
                }
            }
        };
        Self { address, shared, tasks: vec![tokio::spawn(by_udp), tokio::spawn(by_tcp)] }
    }

    /// The server knows this of a name from now on.
    pub fn set(&self, name: &str, knows: Vec<Knows>) {
        self.shared.zone.lock().unwrap().insert(name.to_owned(), knows);
    }

    /// There is no such name from now on.
    pub fn forget(&self, name: &str) {
        self.shared.zone.lock().unwrap().remove(name);
    }

    /// What it was asked for.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    fn answer(&self, question: &[u8], is_tcp: bool) -> Option<Vec<u8>> {
        let (mut place, mut labels) = (12, Vec::new());
        while question[place] > 0 {
            let length = usize::from(question[place]);
            labels.push(String::from_utf8(question[place + 1..=place + length].to_vec()).unwrap());
            place += 1 + length;
        }
        let (name, kind) = (labels.join("."), u16::from_be_bytes([question[place + 1], question[place + 2]]));
        self.asked.lock().unwrap().push(Asked { name: name.clone(), kind, is_tcp, when: Instant::now() });
        let zone = self.zone.lock().unwrap();
        let mut answer = question[..2].to_vec();
        let mut records = Vec::new();
        let mut code = if zone.contains_key(&name) { 0 } else { 3 };
        let mut owner = name;
        while let Some(known) = zone.get(&owner) {
            let mut next = None;
            for knows in known {
                match knows {
                    Knows::Nothing => return None,
                    Knows::Fails(with) => code = *with,
                    Knows::A(ttl, all) if kind == A => {
                        records.extend(all.iter().map(|one| record(&owner, A, *ttl, &one.octets())));
                    }
                    Knows::Aaaa(ttl, all) if kind == AAAA => {
                        records.extend(all.iter().map(|one| record(&owner, AAAA, *ttl, &one.octets())));
                    }
                    Knows::Srv(ttl, all) if kind == SRV => {
                        for (priority, weight, port, target) in all {
                            let numbers = [priority, weight, port].map(|number| number.to_be_bytes()).concat();
                            records.push(record(&owner, SRV, *ttl, &[numbers, wire(target)].concat()));
                        }
                    }
                    Knows::Alias(ttl, other) => {
                        records.push(record(&owner, CNAME, *ttl, &wire(other)));
                        next = Some((*other).to_owned());
                    }
                    _ => {}
                }
            }
            match next {
                Some(next) => owner = next,
                None => break,
            }
        }
        let is_cut = !is_tcp && records.iter().map(Vec::len).sum::<usize>() + place + 5 > DATAGRAM;
        if is_cut {
            records.clear();
        }
        answer.extend([0x81 | if is_cut { 2 } else { 0 }, 0x80 | code]);
        answer.extend([0, 1, 0, u8::try_from(records.len()).unwrap(), 0, 0, 0, 0]);
        answer.extend(&question[12..place + 5]);
        answer.extend(records.concat());
        Some(answer)
    }
}

fn wire(name: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        wire.push(u8::try_from(label.len()).unwrap());
        wire.extend(label.as_bytes());
    }
    wire.push(0);
    wire
}

fn record(owner: &str, kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let mut record = wire(owner);
    record.extend([kind.to_be_bytes(), [0, 1]].concat());
    record.extend(ttl.to_be_bytes());
    record.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
    record.extend(data);
    record
}
