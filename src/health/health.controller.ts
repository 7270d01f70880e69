import { randomUUID } from 'node:crypto';
import { Controller, Get, Req } from '@nestjs/common';
import { ApiProperty, ApiTags } from '@nestjs/swagger';
import type { Request } from 'express';
import { Public } from '../auth/auth.decorators.js';
import { RequestAuthenticator } from '../auth/request-authenticator.js';
import { DATABASE_PROBLEMS } from '../common/errors/database-problems.js';
import { ApiRoute } from '@slipway/api/openapi/api-route.js';
import { Shown } from '@slipway/api/openapi/responses.js';
import { productVersion } from '../common/product.js';
import { ReadinessDto, toPartDtos, Readiness, requireReady } from './readiness.js';

class HealthDto {
  @ApiProperty({ example: 'ok' }) status: string;
}

class ServerInfoDto {
  @ApiProperty({ example: 'Slipway' }) title: string;
  @ApiProperty({ description: 'Version of the service itself.', example: '0.2.0' }) version: string;
  @Shown('Seconds since this replica started.', 42, { type: 'integer' }) uptime: number;

  @Shown(
    'Random, another one after each start of this replica. Not the variable `INSTANCE_ID`.',
    '9d0c3f7e-52b1-4c1d-8a66-3b0e7f4a2c15',
    { format: 'uuid' },
  )
  instance_id: string;
}

const AWAY = DATABASE_PROBLEMS.unreachable.detail;
const NOT_READY = {
  status: 503,
  description: 'A part is missing without which requests fail; `parts` is the same list as in the 200',
  extensions: { parts: [{ name: 'database', status: 'failed', required: true, advice: AWAY }] },
};

const OK = JSON.stringify('OK');

/** Reports health to load balancers, operators and clients of automations; open to everyone and free of secrets. */
@ApiTags('Health')
@Public()
@Controller()
export class HealthController {
  private readonly instanceId = randomUUID();

  constructor(
    private readonly readiness: Readiness,
    private readonly authenticator: RequestAuthenticator,
  ) {}

  @Get(['health/live', 'alive', 'api/automation/health'])
  @ApiRoute('live_', 'The process answers', {
    description: 'Asks nothing of the database: for the decision whether to restart it.',
    answer: { type: HealthDto, description: 'It does' },
  })
  live(): HealthDto {
    return { status: 'ok' };
  }

  @Get(['health/ready', 'api/automation/ready'])
  @ApiRoute('ready_', 'Whether this replica is ready for requests', {
    description: 'For the decision whether to send it requests.',
    answer: { type: ReadinessDto, description: 'Requests succeed; what is missing is in `parts`' },
    problems: [NOT_READY],
  })
  async ready(@Req() request: Request): Promise<ReadinessDto> {
    const [reports, isAdministrator] = await Promise.all([
      this.readiness.report(),
      this.authenticator.isAdministrator(request),
    ]);
    const parts = toPartDtos(reports, isAdministrator);
    requireReady(reports, { parts });
    return { status: reports.every(({ status }) => status === 'ok') ? 'ok' : 'degraded', parts };
  }

  @Get('health')
  @ApiRoute('health_', 'Same as /health/live, in the form that clients of OpenHands know', {
    answer: { schema: { type: 'string' }, description: 'It does', example: 'OK' },
  })
  health(): string {
    return OK;
  }

  @Get('ready')
  @ApiRoute(
    'ready_',
    'Whether this replica is ready for requests, in the form that clients of OpenHands know',
    { answer: { schema: { type: 'string' }, description: 'It does', example: 'OK' }, problems: [503] },
  )
  async isReady(): Promise<string> {
    requireReady(await this.readiness.reportRequired());
    return OK;
  }

  @Get(['server_info', 'api/automation/server_info'])
  @ApiRoute('get_server_info_', 'Name, version and uptime of this replica', {
    description: "The version is the product's; that of the API is `info.version` of this document.",
    answer: { type: ServerInfoDto, description: 'This replica' },
  })
  serverInfo(): ServerInfoDto {
    return {
      title: 'Slipway',
      version: productVersion(),
      uptime: Math.floor(process.uptime()),
      instance_id: this.instanceId,
    };
  }
}
