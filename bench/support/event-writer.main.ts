/**
 * Stands in for the agent servers of many sandboxes: a process of its own that writes events into their conversations, so
 * that what is measured does not share an event loop with it. Its parent sends a `WriterRequest` at a time, and gets a
 * `WriterReport` for each.
 */
import { FakeConversationServer } from '../../test/fakes/fake-conversation-server.js';

/** Servers with these conversations; so many events per second in all of them together; what was done so far; no more events. */
export type WriterRequest =
  | { kind: 'open'; servers: string[][] }
  | { kind: 'write'; eventsPerSecond: number }
  | { kind: 'report' }
  | { kind: 'stop' };

export interface WriterReport {
  servers: { address: string; key: string }[];
  sent: number;
  processorMs: number;
}

const TICK_MS = 5;
/** Gives an event about 1 KB. */
const FILLER = 'A line of what a tool has printed. '.repeat(18);

const servers: (FakeConversationServer & { address: string })[] = [];
const targets: { server: FakeConversationServer; id: string }[] = [];
let timer: NodeJS.Timeout | undefined;
let sent = 0;

process.on('message', (request: WriterRequest) => void respond(request));
process.on('disconnect', () => process.exit());

async function respond(request: WriterRequest): Promise<void> {
  await handle(request);
  const { user, system } = process.cpuUsage();
  const report: WriterReport = {
    servers: servers.map(({ address, key }) => ({ address, key })),
    sent,
    processorMs: (user + system) / 1000,
  };
  process.send?.(report);
}

async function handle(request: WriterRequest): Promise<void> {
  if (request.kind === 'open') {
    for (const ids of request.servers) {
      const server = await FakeConversationServer.start();
      servers.push(server);
      ids.forEach((id) => {
        server.open(id);
        targets.push({ server, id });
      });
    }
  } else if (request.kind === 'write') {
    write(request.eventsPerSecond);
  } else if (request.kind === 'stop') {
    clearInterval(timer);
  }
}

/** Takes the conversations in turns. */
function write(eventsPerSecond: number): void {
  const startedAt = performance.now();
  timer = setInterval(() => {
    const due = ((performance.now() - startedAt) / 1000) * eventsPerSecond;
    for (; sent < due; sent += 1) {
      const { server, id } = targets[sent % targets.length] ?? {};
      const content = [{ type: 'text', text: `written at ${Date.now()} ${FILLER}` }];
      server?.append(id ?? '', { llm_message: { role: 'assistant', content } });
    }
  }, TICK_MS);
}
