import type { MouseEvent } from 'react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { api, at, bodyOf, by, ProblemError, runningSandbox, type Schemas } from '../api/client.js';
import { PATH_PREFIX } from '../api/path-prefix.js';
import { Confirmed } from '../ui/actions.js';
import { type Fields, fieldsOf, Form, given, INHERITED, SelectField, TextField } from '../ui/form.js';
import { Button, Callout, Empty, Row, Section } from '../ui/blocks.js';
import { type OfOwner, sharedSettingsQuery, type StoredSettings, storeSettings } from './stored-settings.js';

type Kind = 'shttp' | 'sse' | 'stdio';
type Stored = NonNullable<Schemas['UserInfo']['mcp_config']>;

const NONE: Stored = { shttp_servers: [], sse_servers: [], stdio_servers: [] };
const LEAD =
  'More tools for your agents, over the Model Context Protocol (MCP). A test runs in a sandbox, where agents use them.';
const KINDS: [Kind, string][] = [
  ['shttp', 'URL (streamable HTTP)'],
  ['sse', 'URL (SSE, older servers)'],
  ['stdio', 'Command'],
];

const SHARED = 'More tools for the agents of all users. Keys go to the address of their server, and are never shown.';

export function ToolServers({ settings, owner = 'user' }: { settings: StoredSettings } & OfOwner) {
  const isShared = owner === 'organization';
  const stored = settings.mcp_config ?? NONE;
  const provided = useQuery({ ...sharedSettingsQuery, enabled: !isShared }).data?.mcp_config ?? NONE;
  const title = isShared ? 'Shared tool servers' : 'Tool servers';
  const formName = isShared ? 'Shared tool server' : 'Tool server';
  const store = (config: Schemas['MCPConfig']) => storeSettings({ mcp_config: config }, owner);
  const test = useMutation({ mutationFn: testToolServer, meta: { showsErrors: true } });
  const remove = (name: string) => store(without(stored, name));
  const save = async (field: Fields) => {
    await store(withServer(stored, candidateOf(field)));
    test.reset();
    return 'Saved. New conversations have its tools.';
  };
  const tryIt = ({ currentTarget: { form } }: MouseEvent<HTMLButtonElement>) => {
    if (form?.reportValidity() === true) {
      test.mutate(candidateOf(fieldsOf(form)));
    }
  };
  const button = <Button isBusy={test.isPending} onClick={tryIt} text="Test" />;
  const rows = rowsOf(stored);
  const others = isShared ? [] : rowsOf(provided).filter(({ name }) => rows.every((row) => row.name !== name));
  return (
    <Section title={title} lead={isShared ? SHARED : LEAD}>
      {rows.length + others.length === 0 && <Empty title="No tool server is configured." />}
      <ul className="rows">
        {rows.map(({ name, detail }) => (
          <Row key={name} title={name} facts={<code>{detail}</code>}>
            <Confirmed name="Remove" of={name} text="Agents lose its tools." act={() => remove(name)} />
          </Row>
        ))}
        {others.map(({ name, detail }) => (
          <Row key={name} title={name} facts={[<code>{detail}</code>, INHERITED]} />
        ))}
      </ul>
      <Form name={formName} submit="Save" onSubmit={save} actions={button}>
        <div className="columns">
          <SelectField label="Kind" options={KINDS} />
          <TextField label="Name" hint="Only for a command" placeholder="files" />
        </div>
        <TextField label="URL or command" required placeholder="https://mcp.example.com/mcp or npx -y files-server" />
        <TextField label="Authorization" type="password" hint="Optional; a key for the URL" />
        {test.isPending && <p role="status">Testing it in a sandbox…</p>}
        {test.isSuccess && <Callout kind="info" text={`It works. Tools: ${test.data.join(', ') || 'none'}`} />}
        {test.isError && <Callout kind="error" text={test.error.message} />}
      </Form>
    </Section>
  );
}

function rowsOf({ shttp_servers: streamed, sse_servers: older, stdio_servers: commands }: Stored) {
  return [
    ...[...streamed, ...older].map(({ url }) => ({ name: url, detail: 'HTTP' })),
    ...commands.map(({ name, command, args }) => ({ name, detail: [command, ...args].join(' ') })),
  ];
}

type Candidate = ReturnType<typeof candidateOf>;

/** The `target` is a URL, or a command with its arguments. */
function candidateOf(field: Fields) {
  return {
    kind: field('kind') as Kind,
    name: field('name'),
    target: field('url or command'),
    key: field('authorization'),
  };
}

/** @param name of a command, or an address */
function without(stored: Stored, name: string) {
  return {
    shttp_servers: stored.shttp_servers.filter(({ url }) => url !== name),
    sse_servers: stored.sse_servers.filter(({ url }) => url !== name),
    stdio_servers: stored.stdio_servers.filter((server) => server.name !== name),
  };
}

/** One with the same name or address is replaced. */
function withServer(stored: Stored, { kind, name, target, key }: Candidate): Schemas['MCPConfig'] {
  if (kind === 'stdio') {
    const [command = '', ...args] = target.split(/\s+/);
    const server = { name: name === '' ? command : name, command, args };
    const others = without(stored, server.name);
    return { ...others, stdio_servers: [...others.stdio_servers, server] };
  }
  const others = without(stored, target);
  const list = kind === 'sse' ? 'sse_servers' : 'shttp_servers';
  return { ...others, [list]: [...others[list], { url: target, ...given({ api_key: key }) }] };
}

/**
 * Names the tools of a server, tried where agents would use it: in a sandbox that runs, or in one that is made for it.
 *
 * @throws Error with the reason where the server cannot be used
 */
async function testToolServer(candidate: Candidate): Promise<string[]> {
  const { items } = await bodyOf(api.GET('/api/v1/sandboxes/search', by({ limit: 100 })));
  const running = items.find(({ status }) => status === 'RUNNING');
  if (running !== undefined) {
    return await testIn(running, candidate);
  }
  const { id } = await bodyOf(api.POST('/api/v1/sandboxes', { body: {} }));
  try {
    return await testIn(await runningSandbox(id), candidate);
  } finally {
    await bodyOf(api.DELETE('/api/v1/sandboxes/{id}', at(id)));
  }
}

/** The agent server of a sandbox is asked directly, with the key of the sandbox. */
async function testIn(sandbox: Schemas['SandboxInfo'], candidate: Candidate): Promise<string[]> {
  const { kind, name, target, key } = candidate;
  const [command, ...args] = target.split(/\s+/);
  const headers = key === '' ? {} : { Authorization: /^(Bearer|Basic) \S/i.test(key) ? key : `Bearer ${key}` };
  const server = kind === 'stdio' ? { command, args } : { transport: kind, url: target, headers };
  const response = await fetch(`${PATH_PREFIX}/api/v1/sandboxes/${sandbox.id}/agent-server/api/mcp/test`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Session-API-Key': sandbox.session_api_key ?? '' },
    body: JSON.stringify({ name: name === '' ? 'test' : name, server }),
  });
  if (!response.ok) {
    throw new ProblemError(response.status, `The sandbox answered ${response.status}. Try again.`);
  }
  const { ok, tools = [], error } = (await response.json()) as { ok: boolean; tools?: string[]; error?: string };
  if (!ok) {
    throw new Error(`It does not work: ${error}`);
  }
  return tools;
}
