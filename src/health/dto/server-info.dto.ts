import { ApiProperty, ApiSchema } from '@nestjs/swagger';

@ApiSchema({ name: 'ServerInfo' })
export class ServerInfoDto {
  @ApiProperty({ example: 'Slipway' })
  title: string;

  @ApiProperty({ description: 'Version of the service itself.', example: '0.1.0' })
  version: string;

  @ApiProperty({ type: 'integer', description: 'Seconds since this replica started.', example: 42 })
  uptime: number;
}
