import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { callerMayOpenSandboxesOf } from '../../../common/scopes.js';
import { thrown } from '@slipway/api/openapi/api-route.js';
import { Shown, ShownOrNull, Time } from '@slipway/api/openapi/responses.js';
import { LookupIds, PageOf, PageQuery } from '@slipway/api/pagination/page.dto.js';
import { Flag, Text } from '@slipway/api/validation/field-decorators.js';
import { NoOtherMembers } from '@slipway/api/validation/unknown-members.js';
import { tooManySandboxes } from '../sandbox-quota.js';
import { SANDBOX_STATUSES, type SandboxStatus, toWireStatus } from '../sandbox-status.js';
import type { SandboxPortState } from '../sandbox-ports.js';
import type { SandboxUrls } from '../sandbox-urls.js';
import type { SandboxView } from '../sandbox.queries.js';

const SANDBOX_ID = '3Yv5mQ8hZk2LrTnBx7Wc0d';

export const TOO_MANY_SANDBOXES = thrown(
  tooManySandboxes(1000),
  'As many sandboxes as one user may have (MAX_SANDBOXES_PER_USER)',
);

@NoOtherMembers()
@ApiSchema({ name: 'CreateSandboxRequest' })
export class CreateSandboxDto {
  @Text('Id of the specification; the default one (the first of the list) when it is left out.', {
    nullIsAbsent: true,
    example: 'slipway',
  })
  sandbox_spec_id?: string;
}

export class DeleteSandboxQueryDto {
  @Text('The id once more: older clients send it. It must be the one of the path.', { example: SANDBOX_ID })
  sandbox_id?: string;
}

export class ExposedUrlDto {
  @ApiProperty({ example: 'AGENT_SERVER' }) name: string;

  @ApiProperty({
    format: 'uri',
    example: 'https://slipway.example.com/api/v1/sandboxes/3Yv5mQ8hZk2LrTnBx7Wc0d/agent-server',
  })
  url: string;

  @ApiProperty({ type: 'integer', description: 'Port of the address.', example: 443 }) port: number;
}

@ApiSchema({ name: 'SandboxPort' })
export class SandboxPortDto implements SandboxPortState {
  @ApiProperty({ example: 'WORKER_1' }) name: string;

  @Shown(
    'A link for a browser.',
    'https://worker-1-dknyiaxfs2p09ot9qxv0nmh3ax.apps.example.com/?slipway_token=EXAMPLE',
    { format: 'uri' },
  )
  url: string;

  @Shown('Null where its agent server does not tell.', true, { type: Boolean, nullable: true })
  listening: boolean | null;
}

export class SandboxIdsQueryDto {
  @LookupIds('Id of a sandbox', SANDBOX_ID) id: string[];
}

@ApiSchema({ name: 'SandboxInfo' })
export class SandboxDto {
  @ApiProperty({ example: SANDBOX_ID }) id: string;
  @ApiProperty({ example: 'c56a4180-65aa-42ec-a945-5fd21dec0538' }) created_by_user_id: string;
  @ApiProperty({ example: 'slipway' }) sandbox_spec_id: string;

  @Shown(
    'RUNNING only once the agent server inside has answered. MISSING: its files are gone; in conversations also, that the sandbox was deleted.',
    'RUNNING',
    { enum: SANDBOX_STATUSES, enumName: 'SandboxStatus' },
  )
  status: SandboxStatus;

  @ShownOrNull(
    'Why it has this status: what was paused to make room for it, progress of the start, cause and exit code of an error, last log lines.',
    null,
  )
  status_detail: string | null;

  @ShownOrNull(
    'What its agent server wants to see in `X-Session-API-Key`; only while it is RUNNING, and for keys with the scope `run`.',
    'iLq0Rz7gqj1mS5bq3cW9xYh2VtKd8PnEoUaFfGsJ4Me',
  )
  session_api_key: string | null;

  @ApiProperty({
    type: [ExposedUrlDto],
    nullable: true,
    description:
      'Addresses of what runs in it; only while it is RUNNING, and for keys with the scope `run`. `AGENT_SERVER` wants `session_api_key`; the ports of ' +
      'what agents start (`WORKER_1`, …) are links for a browser.',
  })
  exposed_urls: ExposedUrlDto[] | null;

  @Time() created_at: string;
}

export class SandboxPageDto extends PageOf(SandboxDto) {}

export class SearchSandboxesQueryDto extends PageQuery('Sandboxes on a page.') {
  @Flag('Those of all users; administrators only. What opens a sandbox is shown to its owner only.', {
    default: false,
    example: false,
  })
  all?: boolean;
}

export function toSandboxDto(view: SandboxView, urls: SandboxUrls): SandboxDto {
  const isOpen = callerMayOpenSandboxesOf(view.userId);
  return {
    id: view.id,
    created_by_user_id: view.userId,
    sandbox_spec_id: view.specId,
    status: toWireStatus(view.status, view.address),
    status_detail: view.statusDetail,
    session_api_key: isOpen ? view.sessionKey : null,
    exposed_urls: view.address === null || !isOpen ? null : exposedUrls(view, urls),
    created_at: view.createdAt.toISOString(),
  };
}

function exposedUrls({ id, sessionKey, ports, exposePort }: SandboxView, urls: SandboxUrls): ExposedUrlDto[] {
  return [
    { name: 'AGENT_SERVER', url: urls.agentServer(id, exposePort) },
    ...(sessionKey === null ? [] : urls.openPorts(id, sessionKey, ports)),
  ].map(({ name, url }) => ({ name, url, port: portOf(url) }));
}

function portOf(url: string): number {
  const { port, protocol } = new URL(url);
  return port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
}
