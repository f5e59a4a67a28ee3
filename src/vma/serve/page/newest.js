/**
 * A function that asks for the newest thing only: while one question is under way the next waits, and whatever
 * was waiting before it is dropped. An answer that `cancel` or a newer question has made stale is dropped too.
 */
export function newest(ask, tell, fail, pause = 0) {
  let waiting = null, busy = false, turn = 0;

  async function run() {
    if (busy) return;
    busy = true;
    while (waiting !== null) {
      if (pause) await new Promise((done) => setTimeout(done, pause));
      if (waiting === null) break;
      const question = waiting, mine = turn;
      waiting = null;
      try {
        const answer = await ask(...question);
        if (mine === turn) tell(answer);
      } catch (error) {
        if (mine === turn && error.busy) {
          waiting ??= question;
          await new Promise((done) => setTimeout(done, 400));
        } else if (mine === turn) fail(error);
      }
    }
    busy = false;
  }

  const asking = (...question) => { waiting = question; run(); };
  asking.cancel = () => { turn += 1; waiting = null; };
  return asking;
}
