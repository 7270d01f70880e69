const { createInterface } = require('node:readline');

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

/** What an agent of others does with any prompt: it thinks, edits, and runs a command. */
const UPDATES = [
  { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'One try is not enough.' } },
  { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'I raise the limit.' } },
  { sessionUpdate: 'tool_call', toolCallId: '1', title: 'Edit lookup.sh', kind: 'edit', status: 'pending' },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: '1',
    status: 'completed',
    content: [
      { type: 'diff', path: 'lookup.sh', oldText: 'attempts=0\nlimit=1\n', newText: 'attempts=0\nlimit=2\n' },
    ],
  },
  { sessionUpdate: 'tool_call', toolCallId: '2', title: 'sh check.sh', kind: 'execute', status: 'pending' },
  {
    sessionUpdate: 'tool_call_update',
    toolCallId: '2',
    status: 'failed',
    content: [{ type: 'content', content: { type: 'text', text: 'sh: not found' } }],
  },
];

const ANSWERS = {
  initialize: { protocolVersion: 1, agentInfo: { name: 'tiny', version: '1' }, agentCapabilities: {} },
  'session/new': { sessionId: 'one' },
  'session/prompt': { stopReason: 'end_turn' },
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (method === 'session/prompt') {
    UPDATES.forEach((update) =>
      send({ method: 'session/update', params: { sessionId: params.sessionId, update } }),
    );
  }
  if (method in ANSWERS) {
    send({ id, result: ANSWERS[method] });
  }
});
