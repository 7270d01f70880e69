export class UnresponsiveModelError extends Error {
  constructor(milliseconds: number) {
    super(`The model sent nothing for ${milliseconds / 1000} s.`);
    this.name = 'UnresponsiveModelError';
  }
}

/** A fetch that fails when nothing arrives for that long, before the response or in the middle of it. */
export function idleTimeoutFetch(
  milliseconds: number,
  redirect: 'follow' | 'error' = 'follow',
): typeof fetch {
  return async (input, init) => {
    const timeout = new AbortController();
    const timer = new IdleTimer(milliseconds, () => timeout.abort(new UnresponsiveModelError(milliseconds)));
    const signal = init?.signal;
    try {
      const response = await fetch(input, {
        ...init,
        redirect,
        signal: signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal,
      });
      timer.restart();
      const { body, status, statusText, headers } = response;
      if (body === null) {
        timer.stop();
        return response;
      }
      return new Response(body.pipeThrough(restartOnChunk(timer)), { status, statusText, headers });
    } catch (error) {
      timer.stop();
      throw error;
    }
  };
}

class IdleTimer {
  readonly #milliseconds: number;
  readonly #onTimeout: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(milliseconds: number, onTimeout: () => void) {
    this.#milliseconds = milliseconds;
    this.#onTimeout = onTimeout;
    this.restart();
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(this.#onTimeout, this.#milliseconds);
    // An abandoned response must not keep the process alive.
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
  }
}

function restartOnChunk(timer: IdleTimer): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      timer.restart();
      controller.enqueue(chunk);
    },
    flush() {
      timer.stop();
    },
  });
}
