/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices of fake hosts: files below a temporary folder. */
#include "folder.h"

#include "topo_priv.h"

#define IB "/sys/class/infiniband"

static char root[FOLDER_BYTES];

PLX_FIXTURE(make_root, 0, folder_make(root))
PLX_FIXTURE(remove_root, folder_remove(root))

/* Write a line in the kernel's format. */
static void put(const char *name, const char *text)
{
	char line[128];

	assert_in_range(snprintf(line, sizeof(line), "%s\n", text), 1, sizeof(line) - 1);
	folder_put(root, name, line);
}

static struct plx_rdma_device the_device(void)
{
	struct plx_rdma_device device;

	assert_int_equal(plx_rdma_devices(root, &device, 1), 1);
	return device;
}

#define MADE_UP(name) PLX_TEST_WITH(name, make_root, remove_root)

MADE_UP(a_host_has_no_devices_or_those_that_the_array_holds)
{
	struct plx_rdma_device device;

	assert_int_equal(plx_rdma_devices(root, &device, 1), 0);
	put(IB "/.hidden", "");
	assert_int_equal(plx_rdma_devices(root, &device, 1), 0);
	put(IB "/mlx5_10/node_type", "1: CA");
	put(IB "/mlx5_2/node_type", "1: CA");
	assert_int_equal(plx_rdma_devices(root, &device, 1), 2);
	assert_string_equal(device.name, "mlx5_2"); /* the first by name */
	assert_int_equal(device.node, -1);
	assert_false(plx_rdma_is_active(&device));
}

MADE_UP(a_roce_device_has_all_attributes_that_the_kernel_shows)
{
	put(IB "/mlx5_0/node_type", "1: CA");
	put(IB "/mlx5_0/device/numa_node", "1");
	put(IB "/mlx5_0/ports/1/state", "4: ACTIVE");
	put(IB "/mlx5_0/ports/1/phys_state", "5: LinkUp");
	put(IB "/mlx5_0/ports/1/link_layer", "Ethernet");
	put(IB "/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)");
	put(IB "/mlx5_0/ports/1/gid_attrs/ndevs/0", "ens1f0np0");
	put("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_1");
	put("/sys/class/infiniband_verbs/uverbs7/ibdev", "mlx5_0");
	put("/sys/class/infiniband_verbs/abi_version", "6");
	struct plx_rdma_device device = the_device();
	assert_int_equal(device.transport, PLX_RDMA_IB);
	assert_int_equal(device.node, 1);
	assert_string_equal(device.uverbs, "uverbs7");
	assert_int_equal(device.port_count, 1);
	assert_int_equal(device.ports[0].number, 1);
	assert_true(device.ports[0].active && plx_rdma_is_active(&device));
	assert_string_equal(device.ports[0].state, "4: ACTIVE");
	assert_string_equal(device.ports[0].phys_state, "5: LinkUp");
	assert_string_equal(device.ports[0].link_layer, "Ethernet");
	assert_string_equal(device.ports[0].rate, "100 Gb/sec (4X EDR)");
	assert_true(device.ports[0].speed_gbps == 100);
	assert_string_equal(device.ports[0].netdev, "ens1f0np0");
}

/* Two ports of one PCI function, and an interface for each. */
MADE_UP(an_infiniband_port_has_the_interface_of_its_number)
{
	put(IB "/mlx4_0/device/net/ib0/dev_port", "0");
	put(IB "/mlx4_0/device/net/ib1/dev_port", "1");
	put(IB "/mlx4_0/ports/1/state", "1: DOWN");
	put(IB "/mlx4_0/ports/2/state", "4: ACTIVE");
	put(IB "/mlx4_0/ports/2/rate", "2.5 Gb/sec (1X SDR)");
	struct plx_rdma_device device = the_device();
	assert_int_equal(device.port_count, 2);
	assert_string_equal(device.ports[0].netdev, "ib0");
	assert_string_equal(device.ports[1].netdev, "ib1");
	assert_false(device.ports[0].active);
	assert_true(plx_rdma_is_active(&device));
	assert_true(device.ports[1].speed_gbps == 2.5);
}

/* rxe on a virtio card: the node is that of the PCI device above it. */
MADE_UP(a_software_device_is_on_the_node_of_its_interface)
{
	put(IB "/rxe0/node_type", "1: CA");
	put(IB "/rxe0/parent", "eth0");
	put(IB "/rxe0/ports/1/state", "4: ACTIVE");
	put("/sys/class/net/eth0/device/modalias", "virtio:1");
	assert_int_equal(the_device().node, -1);
	put("/sys/class/net/eth0/numa_node", "2"); /* device/.. in a folder that is not a link */
	struct plx_rdma_device device = the_device();
	assert_string_equal(device.ports[0].netdev, "eth0");
	assert_int_equal(device.node, 2);
	put("/sys/class/net/eth0/device/numa_node", "3");
	assert_int_equal(the_device().node, 3);
	put(IB "/rxe0/device/numa_node", "-1");
	assert_int_equal(the_device().node, 3);
	put(IB "/rxe0/device/numa_node", "0");
	assert_int_equal(the_device().node, 0);
}

MADE_UP(an_iwarp_device_is_found_by_the_address_of_its_interface)
{
	put(IB "/siw0/node_type", "4: RNIC");
	put(IB "/siw0/ports/1/gids/0", "22a7:970a:bde4:0000:0000:0000:0000:0000");
	put("/sys/class/net/eth0/address", "22:a7:97:0a:bd:e5");
	put("/sys/class/net/lo/address", "00:00:00:00:00:00");
	struct plx_rdma_device device = the_device();
	assert_int_equal(device.transport, PLX_RDMA_IWARP);
	assert_string_equal(device.ports[0].netdev, "");
	put("/sys/class/net/eth1/address", "22:a7:97:0a:bd:e4");
	put("/sys/class/net/eth1/device/numa_node", "1");
	device = the_device();
	assert_string_equal(device.ports[0].netdev, "eth1");
	assert_int_equal(device.node, 1);
}

MADE_UP(ports_and_names_without_room_are_omitted)
{
	char name[128];

	for (unsigned i = 1; i <= PLX_RDMA_PORTS_MAX + 2; i++) {
		snprintf(name, sizeof(name), IB "/switch0/ports/%u/state", i);
		put(name, "4: ACTIVE");
	}
	struct plx_rdma_device device = the_device();

	assert_int_equal(device.port_count, PLX_RDMA_PORTS_MAX);
	assert_int_equal(device.ports[PLX_RDMA_PORTS_MAX - 1].number, PLX_RDMA_PORTS_MAX);
	snprintf(name, sizeof(name), IB "/%065d/node_type", 1);
	put(name, "1: CA");
	assert_string_equal(the_device().name, "switch0");
}

MADE_UP(transports_have_names)
{
	assert_string_equal(plx_rdma_transport_name(PLX_RDMA_IB), "InfiniBand");
	assert_string_equal(plx_rdma_transport_name(PLX_RDMA_IWARP), "iWARP");
	assert_string_equal(plx_rdma_transport_name(PLX_RDMA_OWN), "its own");
	assert_string_equal(plx_rdma_transport_name((enum plx_rdma_transport)99), "unknown");
	put(IB "/efa_0/node_type", "7: unspecified");
	assert_int_equal(the_device().transport, PLX_RDMA_OWN);
	put(IB "/efa_0/node_type", "12: new");
	assert_int_equal(the_device().transport, PLX_RDMA_UNKNOWN);
}

PLX_TEST(an_unknown_name_has_no_node)
{
	static const char *const names[] = {"", ".", "..", "../net", "no/such", "plx_none0"};

	for (size_t i = 0; i < PLX_ARRAY_LEN(names); i++)
		assert_int_equal(plx_device_node(names[i]), -ENODEV);
}

MADE_UP(interfaces_and_pci_addresses_have_nodes_too)
{
	put(IB "/rxe0/parent", "eth1");
	put(IB "/rxe0/ports/1/state", "4: ACTIVE");
	put("/sys/class/net/eth1/device/numa_node", "1");
	put("/sys/class/net/lo/mtu", "65536");
	put("/sys/bus/pci/devices/0000:3b:00.0/numa_node", "2");
	assert_int_equal(topo_kernel_node(root, "rxe0"), 1);
	assert_int_equal(topo_kernel_node(root, "eth1"), 1);
	assert_int_equal(topo_kernel_node(root, "lo"), -1);
	assert_int_equal(topo_kernel_node(root, "0000:3b:00.0"), 2);
	assert_int_equal(topo_kernel_node(root, "3b:00.0"), -ENODEV);
	assert_int_equal(topo_kernel_node(root, "../net/eth1"), -ENODEV);
}

/* A described topology whose devices are the fake host's. */
static struct plx_topo *topo_with(const char *description)
{
	struct plx_topo *topo;

	assert_works(plx_topo_open(description, &topo));
	topo->root = root;
	return topo;
}

static void assert_list(const struct plx_topo *topo, const char *text, const char *written)
{
	struct plx_lcore_map map;
	char out[64];

	assert_works(plx_lcore_map_parse_list("-l", text, topo, &map));
	assert_string_equal(plx_lcore_map_format(&map, out, sizeof(out)), written);
	plx_lcore_map_fini(&map);
}

MADE_UP(a_core_list_names_the_cpus_near_a_device)
{
	struct plx_topo *topo = topo_with("synthetic:pack:2 [numa] core:2 pu:1");
	struct plx_lcore_map map;

	put(IB "/mlx5_0/device/numa_node", "1");
	assert_list(topo, "near:mlx5_0", "2-3");
	assert_list(topo, "0-1@near:mlx5_0", "(0-1)@(2-3)");
	put(IB "/mlx5_0/device/numa_node", "-1");
	assert_fails(plx_lcore_map_parse_list("-l", "near:mlx5_0", topo, &map), -EINVAL,
		     "-l near:mlx5_0: column 6: the system does not know which NUMA node the "
		     "device is near; give node:N, or CPUs");
	plx_topo_close(topo);
	topo = topo_with("synthetic:pack:1 [numa] core:4 pu:1"); /* no doubt there */
	assert_list(topo, "near:mlx5_0", "0-3");
	plx_topo_close(topo);
}

PLX_TEST_MAIN()
