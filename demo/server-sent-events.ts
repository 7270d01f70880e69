export interface ServerSentEvent {
  id: string;
  event: string;
  data: unknown;
}

/** The events of a stream, as far as ours use the format: one line each of id, event and data. */
export async function* serverSentEvents(response: Response): AsyncGenerator<ServerSentEvent> {
  if (response.status !== 200 || !response.body) {
    throw new Error(`the stream was answered with ${response.status}: ${await response.text()}`);
  }
  let text = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      const data = field(frame, 'data');
      if (data !== null) {
        yield { id: field(frame, 'id') ?? '', event: field(frame, 'event') ?? '', data: JSON.parse(data) };
      }
    }
  }
}

function field(frame: string, name: string): string | null {
  const line = frame.split('\n').find((candidate) => candidate.startsWith(`${name}:`));
  return line === undefined ? null : line.slice(name.length + 1).trimStart();
}
