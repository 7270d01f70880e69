import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { NextPageId } from '../../../common/openapi/next-page-id.decorator.js';
import { SandboxDto } from './sandbox.dto.js';

/** A page of sandboxes. */
@ApiSchema({ name: 'SandboxPage' })
export class SandboxPageDto {
  @ApiProperty({ type: [SandboxDto] })
  items: SandboxDto[];

  @NextPageId()
  next_page_id: string | null;
}
