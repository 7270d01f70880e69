import { Body, Controller, HttpCode, Post, Req, Res } from '@nestjs/common';
import { ApiSecurity, ApiTags } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { type AuthUser, CurrentUser } from '../../auth/auth.decorators.js';
import { CloudProxyDto } from './cloud-proxy.dto.js';
import { CloudProxyOperation } from './cloud-proxy.openapi.js';
import { CloudProxyService } from './cloud-proxy.service.js';

/** How the web application that the service serves reaches agent servers: through its own origin. */
@ApiTags('Sandboxes')
@ApiSecurity('APIKeyHeader')
@Controller('api/cloud-proxy')
export class CloudProxyController {
  constructor(private readonly proxy: CloudProxyService) {}

  @Post()
  @HttpCode(200)
  @CloudProxyOperation()
  async forward(
    @CurrentUser() user: AuthUser,
    @Body() body: CloudProxyDto,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await this.proxy.forward(user.id, body, { request, response });
  }
}
