import { randomUUID } from 'node:crypto';
import { Controller, Get, Header, Req } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { presentedKey } from '../auth/presented-key.js';
import { RequestAuthenticator } from '../auth/request-authenticator.js';
import { isDatabaseAway } from '../common/errors/database-failure.js';
import { DomainError } from '../common/errors/domain-error.js';
import { ApiRoute } from '../common/openapi/api-route.js';
import { productVersion } from '../common/product.js';
import { ReadinessDto, toPartDtos } from './readiness.dto.js';
import { type PartReport, Readiness } from './readiness.js';

class HealthDto {
  @ApiProperty({ example: 'ok' }) status: string;
}

class ServerInfoDto {
  @ApiProperty({ example: 'Slipway' }) title: string;
  @ApiProperty({ description: 'Version of the service itself.', example: '0.2.0' }) version: string;

  @ApiProperty({ type: 'integer', description: 'Seconds since this replica started.', example: 42 })
  uptime: number;

  @ApiProperty({
    format: 'uuid',
    description: 'Random, another one after each start of this replica. Not the variable `INSTANCE_ID`.',
    example: '9d0c3f7e-52b1-4c1d-8a66-3b0e7f4a2c15',
  })
  instance_id: string;
}

const NOT_READY = {
  status: 503,
  description: 'A part is missing without which requests fail; `parts` is the same list as in the 200',
  extensions: {
    parts: [
      {
        name: 'database',
        status: 'failed',
        required: true,
        advice: 'The database cannot be reached at the moment; try again.',
      },
    ],
  },
};

const OK = JSON.stringify('OK');

/** For load balancers and operators; open to everyone and free of secrets. */
@ApiTags('Health')
@Public()
@Controller()
export class HealthController {
  /** Identifies this start of the process. */
  private readonly instanceId = randomUUID();

  constructor(
    private readonly readiness: Readiness,
    private readonly authenticator: RequestAuthenticator,
  ) {}

  @Get('health/live')
  @ApiRoute('live_health_live_get', 'The process answers', {
    description: 'Asks nothing of the database: for the decision whether to restart it.',
    answer: { type: HealthDto, description: 'It does' },
  })
  live(): HealthDto {
    return { status: 'ok' };
  }

  @Get('health/ready')
  @ApiRoute(
    'ready_health_ready_get',
    'Whether this replica is ready for requests, and how each part that it needs is doing',
    {
      description: 'For the decision whether to send it requests.',
      answer: { type: ReadinessDto, description: 'Requests succeed; what is missing is in `parts`' },
      problems: [NOT_READY],
    },
  )
  async ready(@Req() request: Request): Promise<ReadinessDto> {
    const [reports, isAdministrator] = await Promise.all([
      this.readiness.report(),
      this.isAdministrator(request),
    ]);
    const parts = toPartDtos(reports, isAdministrator);
    const failed = firstFailed(reports);
    if (failed !== null) {
      throw notReady(failed, { parts });
    }
    return { status: reports.every(({ status }) => status === 'ok') ? 'ok' : 'degraded', parts };
  }

  @Get('health')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @ApiRoute('health_health_get', 'Same as /health/live, in the form that clients of OpenHands know', {
    answer: { schema: { type: 'string' }, description: 'It does', example: 'OK' },
  })
  health(): string {
    return OK;
  }

  @Get('ready')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @ApiRoute(
    'ready_ready_get',
    'Whether this replica is ready for requests, in the form that clients of OpenHands know',
    { answer: { schema: { type: 'string' }, description: 'It does', example: 'OK' }, problems: [503] },
  )
  async isReady(): Promise<string> {
    await this.requireReady();
    return OK;
  }

  @Get('alive')
  @ApiRoute('alive_alive_get', 'Same as /health/live, under the name that older clients know', {
    answer: { type: HealthDto, description: 'It does' },
  })
  alive(): HealthDto {
    return { status: 'ok' };
  }

  @Get('server_info')
  @ApiRoute(
    'get_server_info_server_info_get',
    'Name, version and uptime of this replica, and which start of it this is',
    {
      description: "The version is the product's; that of the API is `info.version` of this document.",
      answer: { type: ServerInfoDto, description: 'This replica' },
    },
  )
  serverInfo(): ServerInfoDto {
    return {
      title: 'Slipway',
      version: productVersion(),
      uptime: Math.floor(process.uptime()),
      instance_id: this.instanceId,
    };
  }

  private async requireReady(): Promise<void> {
    const failed = firstFailed(await this.readiness.reportRequired());
    if (failed !== null) {
      throw notReady(failed);
    }
  }

  /** A key that cannot be checked now counts as missing. */
  private async isAdministrator(request: Request): Promise<boolean> {
    try {
      const user = await this.authenticator.authenticate(request, presentedKey(request.headers));
      return user?.isAdmin === true;
    } catch (error) {
      if (isDatabaseAway(error)) {
        return false;
      }
      throw error;
    }
  }
}

function firstFailed(reports: readonly PartReport[]): PartReport | null {
  return reports.find(({ required, status }) => required && status !== 'ok') ?? null;
}

function notReady({ advice }: PartReport, extensions: Record<string, unknown> = {}): DomainError {
  return new DomainError('unavailable', 'unavailable', advice ?? 'This replica is not ready; try again.', {
    retryAfterSeconds: 1,
    extensions,
  });
}
