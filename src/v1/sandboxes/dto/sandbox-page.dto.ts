import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { SandboxDto } from './sandbox.dto.js';

/** A page of sandboxes. */
@ApiSchema({ name: 'SandboxPage' })
export class SandboxPageDto {
  @ApiProperty({ type: [SandboxDto] })
  items: SandboxDto[];

  @ApiProperty({
    type: String,
    nullable: true,
    description: 'Pass it as `page_id` for the next page.',
    example: null,
  })
  next_page_id: string | null;
}
