import { ApiProperty, ApiSchema } from '@nestjs/swagger';

/** The agent profile that a conversation was started with. */
@ApiSchema({ name: 'LaunchedAgentProfile' })
export class LaunchedAgentProfileDto {
  @ApiProperty({ format: 'uuid', example: '8a1c2d3e-4f50-4a61-9b72-8c93ad04be15' })
  agent_profile_id: string;

  @ApiProperty({ type: 'integer', example: 1 })
  revision: number;
}
