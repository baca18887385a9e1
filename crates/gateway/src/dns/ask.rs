//! Asks a name server one question: by UDP, and by TCP if the answer does not fit (RFC 1035, 4.2).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, TYPE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::LookupError;

/// How long one server may take, and how often all of them are asked.
const PATIENCE: Duration = Duration::from_secs(2);
const ROUNDS: usize = 2;
/// The longest datagram that is read. A longer answer comes by TCP.
const DATAGRAM_MAX: usize = 4096;

/// The answer of the first server that has one, as it was received. It is a response to this question, and either has records or says
/// that there are none.
pub(super) async fn ask(servers: &[SocketAddr], name: &str, kind: TYPE) -> Result<Vec<u8>, LookupError> {
    let mut last = LookupError::NoServer;
    for server in std::iter::repeat_n(servers, ROUNDS).flatten() {
        let asked = match timeout(PATIENCE, ask_one(*server, name, kind)).await {
            Ok(asked) => asked,
            Err(_) => Err(LookupError::Server(*server, io::ErrorKind::TimedOut.into())),
        };
        match asked {
            Err(error @ (LookupError::Server(..) | LookupError::Refused(..))) => last = error,
            result => return result,
        }
    }
    Err(last)
}

async fn ask_one(server: SocketAddr, name: &str, kind: TYPE) -> Result<Vec<u8>, LookupError> {
    let fault = |error| LookupError::Server(server, error);
    let id = random_id().map_err(fault)?;
    let question = question(id, name, kind).ok_or_else(|| LookupError::NoSuchName(name.to_owned()))?;
    let mut answer = by_udp(server, &question, id).await.map_err(fault)?;
    if parse(&answer, id, &question).is_some_and(|packet| packet.has_flags(PacketFlag::TRUNCATION)) {
        answer = by_tcp(server, &question).await.map_err(fault)?;
    }
    match parse(&answer, id, &question).map(|packet| packet.rcode()) {
        Some(RCODE::NoError) => Ok(answer),
        Some(RCODE::NameError) => Err(LookupError::NoSuchName(name.to_owned())),
        Some(other) => Err(LookupError::Refused(server, format!("{other:?}"))),
        None => Err(fault(io::Error::new(io::ErrorKind::InvalidData, "the answer is not one to the question"))),
    }
}

/// An id that nobody can guess, so that nobody can answer in place of the server.
fn random_id() -> io::Result<u16> {
    let mut id = [0; 2];
    SystemRandom::new().fill(&mut id).map_err(|_| io::Error::other("no random numbers"))?;
    Ok(u16::from_be_bytes(id))
}

/// The question on the wire; none if nothing can have this name.
fn question(id: u16, name: &str, kind: TYPE) -> Option<Vec<u8>> {
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(Name::new(name).ok()?, kind.into(), CLASS::IN.into(), false));
    packet.build_bytes_vec().ok()
}

/// The message, if it is a response to this question.
fn parse<'a>(answer: &'a [u8], id: u16, question: &[u8]) -> Option<Packet<'a>> {
    let packet = Packet::parse(answer).ok()?;
    let asked = Packet::parse(question).ok()?;
    let [repeated] = &*packet.questions else { return None };
    let is_same = asked.questions.first().is_some_and(|asked| {
        let name = |question: &Question<'_>| question.qname.to_string();
        asked.qtype == repeated.qtype && name(asked).eq_ignore_ascii_case(&name(repeated))
    });
    (packet.id() == id && packet.has_flags(PacketFlag::RESPONSE) && is_same).then_some(packet)
}

async fn by_udp(server: SocketAddr, question: &[u8], id: u16) -> io::Result<Vec<u8>> {
    // The system chooses a port that nobody can guess either.
    let own: SocketAddr =
        if server.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(own).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut datagram = vec![0; DATAGRAM_MAX];
    loop {
        let length = socket.recv(&mut datagram).await?;
        // Others may have sent something to the port.
        let answer = datagram.get(..length).unwrap_or_default();
        if parse(answer, id, question).is_some() {
            return Ok(answer.to_vec());
        }
    }
}

async fn by_tcp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(question.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; length.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(id: u16, name: &str, kind: TYPE) -> Vec<u8> {
        let question = question(id, name, kind).unwrap();
        Packet::parse(&question).unwrap().into_reply().build_bytes_vec().unwrap()
    }

    #[test]
    fn only_a_response_to_the_question_is_taken() {
        let question = question(7, "app.example", TYPE::A).unwrap();
        let taken = |answer: &[u8]| parse(answer, 7, &question).is_some();
        assert!(taken(&answered(7, "app.example", TYPE::A)));
        assert!(taken(&answered(7, "APP.example", TYPE::A)));
        assert!(!taken(&answered(8, "app.example", TYPE::A)));
        assert!(!taken(&answered(7, "app.example", TYPE::AAAA)));
        assert!(!taken(&answered(7, "other.example", TYPE::A)));
        assert!(!taken(&question), "a question is not a response");
        assert!(!taken(b""));
    }

    /// Whatever a name server sends, reading it ends.
    #[test]
    fn any_answer_can_be_read() {
        let question = question(7, "app.example", TYPE::A).unwrap();
        let mut random = fastrand::Rng::with_seed(20_261_118);
        let valid = answered(7, "app.example", TYPE::A);
        for _ in 0..20_000 {
            let mut answer = valid.clone();
            let more = random.usize(..64);
            answer.extend(std::iter::repeat_with(|| random.u8(..)).take(more));
            for _ in 0..random.usize(..6) {
                let place = random.usize(..answer.len());
                answer[place] = if random.bool() { random.u8(..) } else { 0xc0 };
            }
            answer.truncate(random.usize(..=answer.len()));
            if let Some(packet) = parse(&answer, 7, &question) {
                let _ = super::super::records::chain(&packet, "app.example");
            }
        }
    }
}
