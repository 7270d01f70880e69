import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import type { JsonObject } from '@slipway/common/json-access.js';
import { Shown, ShownOrNull, TEXT_MAP } from '@slipway/api/openapi/responses.js';
import { SchemaRules } from '@slipway/api/openapi/schema-rules.js';
import { field, type FieldProblem } from '@slipway/api/validation/field.js';
import {
  FreeObject,
  Integer,
  MAX_SECRET,
  MAX_URL,
  Nested,
  NestedList,
  Secret,
  sentenceRule,
  Text,
  TextList,
  textList,
  textMap,
} from '@slipway/api/validation/field-decorators.js';
import {
  ARGUMENTS_TEXT,
  argumentsFromText,
  MAX_VARIABLE_NAME,
  orText,
  VARIABLE_NAME,
  variableNameProblem,
  VARIABLES_TEXT,
  variablesFromText,
} from './command-text.js';

/** Characters of JSON: as much as a body may have, which is what the whole configuration is sent with. */
export const MAX_CONFIG_LENGTH = 1_048_576;
/** Downloads and images may take long; no start waits for longer. */
export const MAX_START_SECONDS = 3_600;

/** Most characters of a tool's name; model APIs take 64, and longer names are shortened for them. */
export const MAX_LISTED_NAME = 256;

function ShownTools(): PropertyDecorator {
  return ApiProperty({
    type: [String],
    required: false,
    description: 'Names of the tools that agents get; absent when they get all.',
    example: ['search', 'read_file'],
  });
}

function ShownStartTimeout(): PropertyDecorator {
  return ApiProperty({
    type: 'integer',
    required: false,
    description: 'Seconds that it may take to start; absent: 300.',
    example: 300,
  });
}

@ApiSchema({ name: 'StoredMCPRemoteServerConfig' })
class StoredRemoteMcpServerDto {
  @ApiProperty({ example: 'https://mcp.example.com/sse' }) url: string;
  @ShownOrNull('null, or the mask.', '**********') api_key: string | null;
  @ShownTools() tools?: string[];
  @ShownStartTimeout() start_timeout_seconds?: number;
}

@ApiSchema({ name: 'StoredMCPStdioServerConfig' })
class StoredStdioMcpServerDto {
  @ApiProperty({ example: 'files' }) name: string;
  @ApiProperty({ example: 'npx' }) command: string;
  @ApiProperty({ type: [String], example: ['-y', 'files-server'] }) args: string[];
  @Shown('Every value is the mask.', { API_TOKEN: '**********' }, TEXT_MAP) env: Record<string, string>;
  @ShownTools() tools?: string[];
  @ShownStartTimeout() start_timeout_seconds?: number;
}

/** An MCP configuration as responses show it: secrets are masked, and a mask sent back keeps the secret. */
@ApiSchema({ name: 'StoredMCPConfig' })
export class StoredMcpConfigDto {
  @ApiProperty({ type: [StoredRemoteMcpServerDto] }) sse_servers: StoredRemoteMcpServerDto[];
  @ApiProperty({ type: [StoredStdioMcpServerDto] }) stdio_servers: StoredStdioMcpServerDto[];
  @ApiProperty({ type: [StoredRemoteMcpServerDto] }) shttp_servers: StoredRemoteMcpServerDto[];
}

/** A script may stand in an argument. */
const MAX_ARGUMENT = 16_384;

/** What OpenAPI says about the address of a tool server; its host is checked as well. */
const ADDRESS_FORM = {
  maxLength: MAX_URL,
  pattern: String.raw`^\s*(?:[Hh][Tt][Tt][Pp][Ss]?|[Ww][Ss][Ss]?)://[^\s\\/?#\x00-\x1f\x7f-\x9f][^\s\\\x00-\x1f\x7f-\x9f]*\s*$`,
};

function AllowedTools(): PropertyDecorator {
  return TextList(
    "Names of the server's tools that agents get, as the server lists them; `*` stands for all. null: all. Absent: as stored for the same server, else all.",
    { nullable: true, itemLength: MAX_LISTED_NAME, example: ['search', 'read_file'] },
  );
}

function StartTimeout(): PropertyDecorator {
  return Integer(
    'Seconds that it may take to start. The work begins without a slow one, whose tools come when they are there. null: 300. Absent: as stored for the same server, else 300.',
    { minimum: 1, maximum: MAX_START_SECONDS, nullable: true, example: 300 },
  );
}

/** A tool server reached over HTTP: server-sent events or streamable HTTP. Members it does not list are ignored. */
@ApiSchema({ name: 'MCPRemoteServerConfig' })
export class RemoteMcpServerDto {
  @Text(
    'Absolute http, https, ws or wss address; unique in its list. It is stored and shown in clear: keys belong into `api_key`.',
    {
      required: true,
      trim: true,
      example: 'https://mcp.example.com/sse',
      form: ADDRESS_FORM,
      maxLength: MAX_URL,
      rule: (url) => addressProblem(url, ['http', 'https', 'ws', 'wss']),
    },
  )
  url: string;

  @Secret(
    'Key sent to the server; null, absent or blank for none. It is shown as `**********`, and that mask sent back for the same address keeps the stored key.',
    'mcp-key-example',
    { nullable: true, trim: true },
  )
  api_key?: string | null;

  @AllowedTools() tools?: string[] | null;
  @StartTimeout() start_timeout_seconds?: number | null;
}

const VARIABLES = {
  valueLength: MAX_SECRET,
  keySchema: { pattern: VARIABLE_NAME.source, maxLength: MAX_VARIABLE_NAME },
  keyRule: sentenceRule(variableNameProblem),
};

/** A tool server started as a command inside the sandbox. Members it does not list are ignored. */
@ApiSchema({ name: 'MCPStdioServerConfig' })
export class StdioMcpServerDto {
  @Text('Letters, digits, hyphens and underscores; unique in its list.', {
    required: true,
    trim: true,
    example: 'files',
    pattern: {
      regex: /^\s*[A-Za-z0-9_-]+\s*$/,
      expected: 'Expected a name of letters, digits, hyphens and underscores.',
    },
  })
  name: string;

  @Text('The program alone; its arguments belong into `args`.', {
    required: true,
    trim: true,
    example: 'npx',
    pattern: {
      regex: /^\s*\S+\s*$/,
      expected: 'Expected one program without white space; arguments belong into args.',
    },
  })
  command: string;

  @field(
    'Arguments, one string each, or all of them in one string with the quotes of a shell; shown in clear.',
    { nullIsAbsent: true, example: ['-y', '@modelcontextprotocol/server-filesystem', '/workspace'] },
    orText(textList({ itemLength: MAX_ARGUMENT }), argumentsFromText, ARGUMENTS_TEXT),
  )
  args?: string[];

  @field(
    'Environment variables; one string such as `A=1,B=2` is taken too. Values are shown as `**********`, and that mask sent back for the same server and variable keeps the stored value.',
    { nullIsAbsent: true, example: { API_TOKEN: 'token-example' } },
    orText(textMap(VARIABLES), variablesFromText, VARIABLES_TEXT),
  )
  env?: Map<string, string>;

  @AllowedTools() tools?: string[] | null;
  @StartTimeout() start_timeout_seconds?: number | null;
}

function RemoteServers(description: string): PropertyDecorator {
  return NestedList(description, {
    type: RemoteMcpServerDto,
    orText: { form: ADDRESS_FORM, read: (url) => ({ url }) },
    listRule: (elements) => repeated(elements, 'url'),
  });
}

/** Configuration of tool servers as a client sends it: the whole of it, a list left out is empty. */
@ApiSchema({ name: 'MCPConfig' })
@SchemaRules({ additionalProperties: false })
export class McpConfigDto {
  @RemoteServers('Servers reached by server-sent events; an element may be the bare address.')
  sse_servers?: RemoteMcpServerDto[];

  @NestedList('Commands added to the tool router that runs inside the sandbox.', {
    type: StdioMcpServerDto,
    listRule: (elements) => repeated(elements, 'name'),
  })
  stdio_servers?: StdioMcpServerDto[];

  @RemoteServers('Servers reached by streamable HTTP; an element may be the bare address.')
  shttp_servers?: RemoteMcpServerDto[];

  @FreeObject(
    'Servers by name, as other programs keep them; in place of the three lists. Keys, headers, arguments and variables may name stored secrets: `${secret:NAME}`.',
    {
      nullIsAbsent: true,
      example: {
        files: { command: 'npx', args: ['-y', 'files-server'], env: { API_TOKEN: '${secret:TOKEN}' } },
      },
      maxLength: MAX_CONFIG_LENGTH,
    },
  )
  mcpServers?: JsonObject;
}

const MCP_CONFIG_MEMBERS = ['sse_servers', 'stdio_servers', 'shttp_servers', 'mcpServers'] as const;

function repeated<Member extends string>(
  elements: readonly { index: number; element: Partial<Record<Member, unknown>> }[],
  member: Member,
): FieldProblem[] {
  const msg = `Expected every ${member} once; an earlier element has this one.`;
  const values = elements.map(({ element }) => element[member]);
  return elements
    .filter((_, at) => typeof values[at] === 'string' && values.indexOf(values[at]) < at)
    .map(({ index }) => ({ type: 'value_error', msg, path: [String(index), member] }));
}

export const MCP_CONFIG_EXAMPLE = {
  sse_servers: [{ url: 'https://mcp.example.com/sse', api_key: 'mcp-key-example' }],
  stdio_servers: [
    { name: 'files', command: 'npx', args: ['-y', 'files-server'], env: { API_TOKEN: 'token-example' } },
  ],
  shttp_servers: [],
};

/** A body's `mcp_config`: arrives as `McpConfigDto`; null clears, absent keeps. */
export function McpConfigField(): PropertyDecorator {
  return Nested(
    'Tool servers; replaces the stored configuration. null clears it. Members other than the three lists and `mcpServers` are refused.',
    { type: McpConfigDto, nullable: true, onlyMembers: MCP_CONFIG_MEMBERS, example: MCP_CONFIG_EXAMPLE },
  );
}
