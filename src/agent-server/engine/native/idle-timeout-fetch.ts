/** The model's provider sent no byte for too long. */
export class SilentModelError extends Error {
  constructor(milliseconds: number) {
    super(`The model sent nothing for ${milliseconds / 1000} s.`);
    this.name = 'SilentModelError';
  }
}

/** A fetch that fails as soon as no byte arrives for that long, before the answer or in the middle of it. */
export function idleTimeoutFetch(
  milliseconds: number,
  redirect: 'follow' | 'error' = 'follow',
): typeof fetch {
  return async (input, init) => {
    const silence = new AbortController();
    const watch = new Watch(milliseconds, () => silence.abort(new SilentModelError(milliseconds)));
    const given = init?.signal;
    try {
      const response = await fetch(input, {
        ...init,
        redirect,
        signal: given ? AbortSignal.any([given, silence.signal]) : silence.signal,
      });
      watch.restart();
      const { body, status, statusText, headers } = response;
      if (body === null) {
        watch.stop();
        return response;
      }
      return new Response(body.pipeThrough(watched(watch)), { status, statusText, headers });
    } catch (error) {
      watch.stop();
      throw error;
    }
  };
}

class Watch {
  readonly #milliseconds: number;
  readonly #late: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(milliseconds: number, late: () => void) {
    this.#milliseconds = milliseconds;
    this.#late = late;
    this.restart();
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(this.#late, this.#milliseconds);
    // An answer that nobody reads any more keeps no process alive.
    this.#timer.unref();
  }

  stop(): void {
    if (this.#timer !== null) {
      clearTimeout(this.#timer);
    }
  }
}

function watched(watch: Watch): TransformStream<Uint8Array, Uint8Array> {
  return new TransformStream({
    transform(chunk, controller) {
      watch.restart();
      controller.enqueue(chunk);
    },
    flush() {
      watch.stop();
    },
  });
}
