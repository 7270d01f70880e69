import { Controller, Get } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import { AdministratorsOnly } from '../auth/auth.guard.js';
import { recentLogLines } from '@slipway/api/logging/app-logger.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { Shown, TEXT_MAP } from '@slipway/api/openapi/responses.js';
import { productVersion } from '../common/product.js';
import { CredentialsPlace } from '../config/credentials-place.js';
import { configurationReport } from '../config/load-config.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { ReadinessPartDto, toPartDtos, Readiness } from './readiness.js';

const Counts = (description: string, example: Record<string, number>): PropertyDecorator =>
  ApiProperty({ type: 'object', additionalProperties: { type: 'integer' }, description, example });

class ActivityDto {
  @Counts(
    'Starts of conversations that wait: for a place within the quota of their user, or for their sandbox.',
    { place: 3, sandbox: 1 },
  )
  starts_waiting: Record<string, number>;

  @Counts('Starts by status: those under way, and those that ended within the last hour.', {
    WAITING_FOR_SANDBOX: 4,
    PREPARING_REPOSITORY: 1,
    READY: 17,
    ERROR: 0,
  })
  starts: Record<string, number>;

  @Counts('Conversations in running sandboxes by what their agents do.', { running: 5, finished: 2 })
  conversations: Record<string, number>;

  @Counts('Sandboxes by status.', { RUNNING: 7, PAUSED: 40 })
  sandboxes: Record<string, number>;
}

class DiagnosticsDto {
  @Shown(
    'Of the service and of what it runs on.',
    { slipway: '0.2.0', node: '24.11.0', platform: 'linux-x64' },
    TEXT_MAP,
  )
  versions: Record<string, string>;

  @Shown(
    'Variables that are set, and where credentials of sandboxes are. Only numbers, words of a list and paths show their value.',
    { PORT: '3000', DATABASE_URL: '(set)', SANDBOX_CREDENTIALS: 'outside (by default)' },
    TEXT_MAP,
  )
  configuration: Record<string, string>;

  @ApiProperty({ type: [ReadinessPartDto], description: 'As in `GET /health/ready`, with the causes.' })
  parts: ReadinessPartDto[];

  @ApiProperty({
    description:
      'What the service does now for all users, on all replicas: the same numbers as the metrics have.',
  })
  activity: ActivityDto;

  @Shown('The last lines of the log, oldest first.', ['12:30:01 INFO listening'], { type: [String] })
  log: string[];
}

/** What an operator attaches to a report, or looks at first. */
@ApiTags('Health')
@AdministratorsOnly()
@Controller('api/v1/diagnostics')
export class DiagnosticsController {
  constructor(
    private readonly readiness: Readiness,
    private readonly metrics: Metrics,
    private readonly credentials: CredentialsPlace,
  ) {}

  @Get()
  @ApiRoute(
    'get_diagnostics',
    'Versions, configuration without secrets, parts and last log lines of this replica, and what the service does',
    { description: 'Administrators only.', answer: { type: DiagnosticsDto, description: 'This replica' } },
  )
  async show(): Promise<DiagnosticsDto> {
    return {
      versions: programVersions(),
      configuration: { ...configurationReport(), SANDBOX_CREDENTIALS: this.credentials.shown },
      parts: toPartDtos(await this.readiness.report(), true),
      activity: await this.activity(),
      log: [...recentLogLines()],
    };
  }

  private async activity(): Promise<ActivityDto> {
    const [waiting, starts, conversations, sandboxes] = await Promise.all([
      this.metrics.sums('slipway_conversation_starts_waiting', 'waits_for'),
      this.metrics.sums('slipway_conversation_starts', 'status'),
      this.metrics.sums('slipway_conversations', 'execution_status'),
      this.metrics.sums('slipway_sandboxes', 'status'),
    ]);
    return { starts_waiting: waiting, starts, conversations, sandboxes };
  }
}

function programVersions(): Record<string, string> {
  return {
    slipway: productVersion(),
    node: process.versions.node,
    platform: `${process.platform}-${process.arch}`,
  };
}
